//! Socket drivers: io_uring and epoll. The only crate with unsafe code.
