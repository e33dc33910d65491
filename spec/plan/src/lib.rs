//! The frozen plan: data model, canonical bytes, hash, bundle.
