#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| assize_props::tls::check(data));
