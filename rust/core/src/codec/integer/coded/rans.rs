//! Tokens as numbers in states. Four states take turns, so that a processor works on several tokens
//! at once.

use std::hint::select_unpredictable;

use super::context::Contexts;
use super::frequencies::{Frequencies, SCALE_BITS};
use super::token::TOKENS;
use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

/// Smallest value of a state. States are below 2^32.
const STATE_MIN: u32 = 1 << 16;
const STATES: usize = 4;
/// Number of 16-bit words that the states take.
pub(super) const STATES_WORDS: usize = 2 * STATES;
/// The low bits of a state are the slot of its token.
const SLOTS: usize = 1 << SCALE_BITS;
const SLOT_MASK: u32 = (1 << SCALE_BITS) - 1;

/// Appends the tokens, each with its context: first the final states, then words of 16 bits.
pub(super) fn pack(tokens: &[(u8, u8)], frequencies: &[Option<Frequencies>], out: &mut Vec<u8>) {
    let ranges: Vec<[(u16, u16); TOKENS]> = frequencies
        .iter()
        .map(|each| each.as_ref().map_or([(0, 0); TOKENS], Frequencies::ranges))
        .collect();
    let mut states = [STATE_MIN; STATES];
    let mut words = Vec::with_capacity(tokens.len() / 2);
    for (index, (token, context)) in tokens.iter().enumerate().rev() {
        let state = &mut states[index % STATES];
        let (frequency, start) = ranges[usize::from(*context)][usize::from(*token)];
        let (frequency, start) = (u32::from(frequency), u32::from(start));
        if u64::from(*state) >= u64::from(frequency) << (32 - SCALE_BITS) {
            let [low, high, ..] = state.to_le_bytes();
            words.push([low, high]);
            *state >>= 16;
        }
        let (quotient, rest) = (*state / frequency, *state % frequency);
        *state = (quotient << SCALE_BITS).wrapping_add(rest).wrapping_add(start);
    }
    for state in states {
        out.extend_from_slice(&state.to_le_bytes());
    }
    for word in words.iter().rev() {
        out.extend_from_slice(word);
    }
}

/// Slots of one token in one context.
#[derive(Clone, Copy, Default)]
struct TokenRange {
    frequency: u16,
    start: u16,
}

/// Tokens of the slots, and slots of the tokens, in each context.
///
/// The context of a token follows from the tokens before it. So the way from a token to the next
/// token decides the speed. It leads only through `tokens`, which is small enough for the first
/// cache.
pub(super) struct TokenTables {
    tokens: Vec<[u8; SLOTS]>,
    ranges: Vec<[TokenRange; TOKENS]>,
}

impl TokenTables {
    /// Makes tables for `count` contexts. Only changed bytes lead to a context that no frequencies
    /// were added for. Its tokens are arbitrary.
    pub(super) fn new(count: usize) -> Self {
        let ranges = vec![[TokenRange::default(); TOKENS]; count];
        Self { tokens: vec![[0; SLOTS]; count], ranges }
    }

    /// Adds the frequencies of a context.
    pub(super) fn add(&mut self, context: usize, frequencies: &Frequencies) {
        let (tokens, ranges) = (&mut self.tokens[context], &mut self.ranges[context]);
        for ((token, range), (frequency, start)) in (0..).zip(ranges).zip(frequencies.ranges()) {
            tokens[usize::from(start)..][..usize::from(frequency)].fill(token);
            *range = TokenRange { frequency, start };
        }
    }
}

/// Takes the number of words, the states and the words off `input`, and returns their `count`
/// tokens.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if the words hold other tokens.
pub(super) fn unpack(
    input: &mut ByteReader<'_>,
    tables: &TokenTables,
    contexts: &Contexts,
    count: usize,
) -> Result<Vec<u8>> {
    let word_count = input.len(input.remaining() / 2)?;
    let mut states = [0; STATES];
    for state in &mut states {
        *state = u32::from_le_bytes(input.array()?);
    }
    let words = input.take(2 * word_count)?.as_chunks().0;
    let mut reader = WordReader { states, words, word: 0 };
    let mut tokens = vec![0; count];
    if contexts.count == 1 {
        reader.fill(&mut tokens, tables, |_, _| 0);
    } else {
        reader.fill(&mut tokens, tables, |before, earlier| contexts.of(before, earlier));
    }
    input.check(reader.word == words.len() && reader.states == [STATE_MIN; STATES])?;
    Ok(tokens)
}

struct WordReader<'a> {
    states: [u32; STATES],
    words: &'a [[u8; 2]],
    word: usize,
}

impl WordReader<'_> {
    /// Reads tokens. `context_of` returns the context after the previous token and the token before
    /// that. Tokens after the last word are arbitrary.
    fn fill(
        &mut self,
        tokens: &mut [u8],
        tables: &TokenTables,
        context_of: impl Fn(u8, u8) -> usize,
    ) {
        let Self { mut states, words, mut word } = *self;
        let (mut before, mut earlier) = (0, 0);
        let mut next_token = |state: &mut u32| {
            let context = context_of(before, earlier);
            let slot = *state & SLOT_MASK;
            let token = tables.tokens[context][slot as usize];
            let range = tables.ranges[context][usize::from(token)];
            let high = u32::from(range.frequency).wrapping_mul(*state >> SCALE_BITS);
            let next = high.wrapping_add(slot).wrapping_sub(range.start.into());
            // Half of the states need a word, and no processor can tell which. So a word is loaded
            // for each state.
            let low = words.get(word).map_or(0, |word| u16::from_le_bytes(*word));
            let needs_word = next < STATE_MIN;
            *state = select_unpredictable(needs_word, next << 16 | u32::from(low), next);
            word = word.wrapping_add(usize::from(needs_word));
            (before, earlier) = (token, before);
            token
        };
        let (turns, rest) = tokens.as_chunks_mut::<STATES>();
        for turn in turns {
            for (out, state) in turn.iter_mut().zip(&mut states) {
                *out = next_token(state);
            }
        }
        // A copy, because an array with an index that is not constant does not stay in registers.
        let mut last = states;
        for (out, state) in rest.iter_mut().zip(&mut last) {
            *out = next_token(state);
        }
        (self.states, self.word) = (last, word);
    }
}
