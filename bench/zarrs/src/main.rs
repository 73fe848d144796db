// SPDX-License-Identifier: BSL-1.0
//! zarrs' packbits, measured as harness.hpp says: samples in CPU time of the thread between two of memcpy.
//!
//!   zarrs-bench JSON [--quick]
//!
//! zarrs allocates what it returns; there is no way into buffers of one's own. At 64 MiB a call takes a second, so it is left out.

use std::num::NonZeroU64;
use zarrs::array::codec::api::Codec;
use zarrs::array::{ArrayBytes, CodecOptions, DataType, FillValue};
use zarrs::metadata::v3::MetadataV3;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8;
}

const THREAD_CPU_TIME: i32 = 3;
const BATCH: f64 = 100e-6;

fn now() -> f64 {
    let mut t = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(THREAD_CPU_TIME, &mut t) };
    t.seconds as f64 + 1e-9 * t.nanoseconds as f64
}

fn seconds(calls: usize, mut work: impl FnMut()) -> f64 {
    let start = now();
    for _ in 0..calls {
        work();
    }
    (now() - start) / calls as f64
}

fn calls_for(mut work: impl FnMut()) -> usize {
    work();
    ((BATCH / seconds(1, &mut work).max(1e-7)) as usize).clamp(1, 1000)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `n` bytes at a 64-byte border.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(n: usize) -> Self {
        let bytes = vec![1; n + 64];
        let start = bytes.as_ptr().align_offset(64);
        Aligned { bytes, start }
    }
    fn data(&mut self) -> *mut u8 {
        self.bytes[self.start..].as_mut_ptr()
    }
}

fn measure(name: &str, n: usize, wanted: usize, mut work: impl FnMut()) -> String {
    let (mut from, mut to) = (Aligned::new(n), Aligned::new(n));
    let (from, to) = (from.data(), to.data());
    let copy = || {
        std::hint::black_box(unsafe { memcpy(to, from, n) });
    };
    let (base_calls, calls) = (calls_for(copy), calls_for(&mut work));
    let (mut speeds, mut ratios, begin) = (vec![], vec![], now());
    while ratios.len() < wanted && (now() - begin < 0.5 || ratios.is_empty()) {
        let before = seconds(base_calls, copy);
        let time = seconds(calls, &mut work);
        let after = seconds(base_calls, copy);
        // the two agree, or it is late
        if before.max(after) <= 1.12 * before.min(after) || now() - begin > 0.4 {
            speeds.push(n as f64 / time / 1e9);
            ratios.push((before + after) / 2.0 / time);
        }
    }
    let (gbps, ratio) = (median(speeds), median(ratios));
    format!("{{\"name\": \"{name}\", \"peer\": \"zarrs\", \"bytes\": {n}, \"gbps\": {gbps:.4}, \"ratio\": {ratio:.5}}}")
}

fn metadata(json: serde_json::Value) -> MetadataV3 {
    serde_json::from_value(json).unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let wanted = if arguments.iter().any(|a| a == "--quick") { 5 } else { 15 };
    let options = CodecOptions::default().with_concurrent_target(1);
    let mut rows = vec![];
    for n in [1 << 16, 1 << 20] {
        for (name, type_name, size, bits) in
            [("bool", "bool", 1, 1), ("8/4", "uint8", 1, 4), ("16/12", "uint16", 2, 12), ("32/20", "uint32", 4, 20), ("64/40", "uint64", 8, 40)]
        {
            let data_type = DataType::from_metadata(&metadata(type_name.into())).unwrap();
            let codec = serde_json::json!({"name": "packbits", "configuration": {"first_bit": 0, "last_bit": bits - 1}});
            let Codec::ArrayToBytes(codec) = Codec::from_metadata(&metadata(codec)).unwrap() else { panic!() };
            let (shape, fill) = ([NonZeroU64::new((n / size) as u64).unwrap()], FillValue::new(vec![0; size]));
            let mut state = 1u64;
            let mut elements = Vec::with_capacity(n);
            for _ in 0..n / size {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                elements.extend_from_slice(&((state >> 16) & ((1 << bits) - 1)).to_le_bytes()[..size]);
            }
            let encode = || codec.encode(ArrayBytes::new_flen(elements.as_slice()), &shape, &data_type, &fill, &options).unwrap();
            let encoded = encode().into_owned();
            let decode = || codec.decode(encoded.as_slice().into(), &shape, &data_type, &fill, &options).unwrap();
            assert!(decode().into_fixed().unwrap().as_ref() == elements.as_slice());
            rows.push(measure(&format!("encode/{name}"), n, wanted, || {
                std::hint::black_box(encode());
            }));
            rows.push(measure(&format!("decode/{name}"), n, wanted, || {
                std::hint::black_box(decode());
            }));
        }
    }
    std::fs::write(&arguments[1], format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
}
