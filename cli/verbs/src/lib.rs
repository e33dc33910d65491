//! One module a verb: typed options in, data out.
