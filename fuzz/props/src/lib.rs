//! Bodies of the fuzz targets as plain functions, and tests that need runtime and reader together.
