"""Fast paths for many selections at once; each agrees with geobounds exactly."""
