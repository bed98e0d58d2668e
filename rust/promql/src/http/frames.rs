//! Frames of a streamed remote read: each has its length, its CRC-32C, and a message with chunks of
//! one series (`storage/remote/chunked.go` of Prometheus).

use prost::Message;
use prost::encoding::encode_varint;

use super::messages::{ChunkMessage, ChunkedSeries, FrameMessage, LabelMessage};
use super::xor_chunk::{CHUNK_SAMPLES_MAX, xor_chunk};
use crate::budget::SampleBudget;
use crate::refusal::EvaluationResult;
use crate::source::SampledSeries;

/// Bytes of chunks after which a frame ends, as in Prometheus.
const FRAME_BYTES: usize = 1 << 20;
/// `Chunk.Encoding.XOR`.
const XOR: i32 = 1;
/// The polynomial of Castagnoli, reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Appends the frames of a series, which belongs to the query with this index. The bytes of each
/// frame count before the next frame is made.
///
/// # Errors
/// Returns the refusal of a read that passed a bound.
pub(super) fn put_frames(
    series: SampledSeries,
    query: i64,
    budget: &SampleBudget,
    out: &mut Vec<u8>,
) -> EvaluationResult<()> {
    let labels: Vec<LabelMessage> = series.labels.into_iter().map(LabelMessage::from).collect();
    let times_ms = series.times_ms.chunks(CHUNK_SAMPLES_MAX);
    let mut chunks = times_ms.zip(series.values.chunks(CHUNK_SAMPLES_MAX)).peekable();
    while chunks.peek().is_some() {
        let (mut held, mut bytes) = (Vec::new(), 0);
        while bytes < FRAME_BYTES
            && let Some((times_ms, values)) = chunks.next()
            && let ([min_time_ms, ..], [.., max_time_ms]) = (times_ms, times_ms)
        {
            let data = xor_chunk(times_ms, values);
            bytes += data.len();
            let (min_time_ms, max_time_ms) = (*min_time_ms, *max_time_ms);
            held.push(ChunkMessage { min_time_ms, max_time_ms, encoding: XOR, data });
        }
        let series = vec![ChunkedSeries { labels: labels.clone(), chunks: held }];
        let message = FrameMessage { series, query }.encode_to_vec();
        budget.take_bytes(message.len())?;
        encode_varint(message.len() as u64, out);
        out.extend_from_slice(&crc32c(&message).to_be_bytes());
        out.extend_from_slice(&message);
    }
    Ok(())
}

/// Returns the CRC-32C of bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ (crc >> 8)
    })
}

/// The CRC-32C of each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let (mut at, mut byte) = (0, 0_u32);
    while at < table.len() {
        let (mut crc, mut bit) = (byte, 0);
        while bit < u8::BITS {
            crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
        byte += 1;
    }
    table
};
