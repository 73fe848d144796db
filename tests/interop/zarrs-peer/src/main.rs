// SPDX-License-Identifier: BSL-1.0
//! zarrs as a peer: one JSON request per line on standard input, one JSON answer per line on standard output.
//!
//!   {"ask": "encode", "data_type": "uint16", "codec": {"name": "packbits"}, "count": 3, "hex": "..."}
//!   {"ask": "decode", ... as above}
//!   {"ask": "slice", ..., "first": 1, "last": 2}      elements first .. last - 1, by zarrs' partial decoder
//!   {"ask": "read", "path": "some.zarr"}              all elements of the array whose zarr.json is in that folder; before each of
//!                                                     variable length its length, 8 bytes, little endian
//!   {"ask": "write", "path": "some.zarr", "hex": "..."}
//!
//! An answer is {"hex": ...} or {"refused": why}; a panic of zarrs counts as refused, and says so.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use zarrs::array::codec::api::{ArrayToBytesCodecTraits, Codec};
use zarrs::array::{Array, ArrayBytes, ArraySubset, CodecOptions, DataType, FillValue};
use zarrs::filesystem::FilesystemStore;
use zarrs::metadata::v3::MetadataV3;

type Bytes = Result<Vec<u8>, String>;

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn text<'a>(request: &'a Value, key: &str) -> Result<&'a str, String> {
    request[key].as_str().ok_or(format!("the request has no text {key}"))
}

fn number(request: &Value, key: &str) -> Result<u64, String> {
    request[key].as_u64().ok_or(format!("the request has no number {key}"))
}

fn unhex(hex: &str) -> Bytes {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.ok_or("the request's hex is none")?;
    Ok(digits.chunks_exact(2).map(|d| (16 * d[0] + d[1]) as u8).collect())
}

fn metadata(value: &Value) -> Result<MetadataV3, String> {
    serde_json::from_value(value.clone()).map_err(sentence)
}

/// What `encode`, `decode` and `slice` work on: one chunk of one dimension.
struct Chunk {
    codec: Arc<dyn ArrayToBytesCodecTraits>,
    data_type: DataType,
    fill: FillValue,
    shape: [NonZeroU64; 1],
}

impl Chunk {
    fn of(request: &Value) -> Result<Self, String> {
        let data_type = DataType::from_metadata(&metadata(&request["data_type"])?).map_err(sentence)?;
        let Codec::ArrayToBytes(codec) = Codec::from_metadata(&metadata(&request["codec"])?).map_err(sentence)? else {
            return Err("not an array to bytes codec".into());
        };
        let size = data_type.fixed_size().ok_or("not a type of fixed size")?;
        let count = NonZeroU64::new(number(request, "count")?).ok_or("zarrs has no chunk of zero elements")?;
        Ok(Chunk { codec, data_type, fill: FillValue::new(vec![0; size]), shape: [count] })
    }

    fn encode(&self, elements: Vec<u8>) -> Bytes {
        let elements = ArrayBytes::new_flen(elements);
        let encoded = self.codec.encode(elements, &self.shape, &self.data_type, &self.fill, &CodecOptions::default());
        Ok(encoded.map_err(sentence)?.into_owned())
    }

    fn decode(&self, encoded: Vec<u8>) -> Bytes {
        let elements = self.codec.decode(encoded.into(), &self.shape, &self.data_type, &self.fill, &CodecOptions::default());
        Ok(elements.map_err(sentence)?.into_fixed().map_err(sentence)?.into_owned())
    }

    fn slice(&self, encoded: Vec<u8>, first: u64, last: u64) -> Bytes {
        let options = CodecOptions::default();
        let decoder = self.codec.clone().partial_decoder(Arc::new(encoded), &self.shape, &self.data_type, &self.fill, &options);
        let wanted = ArraySubset::new_with_ranges(&[first..last]);
        let decoder = decoder.map_err(sentence)?;
        let elements = decoder.partial_decode(&wanted, &options).map_err(sentence)?;
        Ok(elements.into_fixed().map_err(sentence)?.into_owned())
    }
}

fn open(request: &Value) -> Result<Array<FilesystemStore>, String> {
    let store = FilesystemStore::new(text(request, "path")?).map_err(sentence)?;
    Array::open(Arc::new(store), "/").map_err(sentence)
}

fn answer(request: &Value) -> Bytes {
    match text(request, "ask")? {
        "encode" => Chunk::of(request)?.encode(unhex(text(request, "hex")?)?),
        "decode" => Chunk::of(request)?.decode(unhex(text(request, "hex")?)?),
        "slice" => Chunk::of(request)?.slice(unhex(text(request, "hex")?)?, number(request, "first")?, number(request, "last")?),
        "read" => {
            let array = open(request)?;
            let elements: ArrayBytes = array.retrieve_array_subset(&array.subset_all()).map_err(sentence)?;
            if let ArrayBytes::Variable(texts) = elements {
                let ends = texts.offsets().windows(2);
                return Ok(ends.flat_map(|e| [&((e[1] - e[0]) as u64).to_le_bytes(), &texts.bytes()[e[0]..e[1]]].concat()).collect());
            }
            Ok(elements.into_fixed().map_err(sentence)?.into_owned())
        }
        "write" => {
            let array = open(request)?;
            let elements = ArrayBytes::new_flen(unhex(text(request, "hex")?)?);
            array.store_array_subset(&array.subset_all(), elements).map_err(sentence)?;
            Ok(Vec::new())
        }
        other => Err(format!("nobody can ask {other}")),
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {})); // a panic becomes an answer, below
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("UTF-8")).expect("one JSON request per line");
        let reply = match catch_unwind(AssertUnwindSafe(|| answer(&request))) {
            Ok(Ok(bytes)) => json!({"hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()}),
            Ok(Err(why)) => json!({"refused": why}),
            Err(_) => json!({"refused": "zarrs panicked"}),
        };
        writeln!(out, "{reply}").and_then(|()| out.flush()).expect("a reader");
    }
}
