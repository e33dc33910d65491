//! Pure statistics, integers first.
