"""Execute a notebook and write it elsewhere: a process of its own, run by a test."""

import sys

import nbformat
from jupyter_client import KernelManager
from nbclient import NotebookClient

if __name__ == "__main__":
    source, target, socket = sys.argv[1:]
    notebook = nbformat.read(source, as_version=4)
    # A socket file instead of a port: no traffic at all.
    kernel = KernelManager(transport="ipc", ip=socket)
    NotebookClient(notebook, km=kernel, timeout=300).execute()
    nbformat.write(notebook, target)
