//! Tokens as numbers in states. Four states take turns, so that a processor works on several tokens
//! at once.

use super::context::CONTEXTS_MAX;
use super::frequencies::{Frequencies, SCALE_BITS};
use super::token::TOKENS;
use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

/// Smallest value of a state. States are below 2^32.
const STATE_MIN: u32 = 1 << 16;
const STATES: usize = 4;
/// Number of 16-bit words that the states take.
pub(super) const STATES_WORDS: usize = 2 * STATES;
const SLOTS: usize = 1 << SCALE_BITS;

/// Appends the tokens, each with its context: first the final states, then words of 16 bits.
pub(super) fn pack(tokens: &[(u8, u8)], frequencies: &[Option<Frequencies>], out: &mut Vec<u8>) {
    let ranges: Vec<[(u32, u32); TOKENS]> = frequencies
        .iter()
        .map(|each| each.as_ref().map_or([(0, 0); TOKENS], Frequencies::ranges))
        .collect();
    let mut states = [STATE_MIN; STATES];
    let mut words = Vec::with_capacity(tokens.len() / 2);
    for (index, (token, context)) in tokens.iter().enumerate().rev() {
        let state = &mut states[index % STATES];
        let (frequency, start) = ranges[usize::from(*context)][usize::from(*token)];
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

/// Meaning of a slot: a token, its frequency, and the offset of the slot in the token's range.
#[derive(Clone, Copy)]
struct TokenSlot(u32);

impl TokenSlot {
    #[inline]
    const fn token(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    #[inline]
    const fn frequency(self) -> u32 {
        self.0 >> 8 & 0xfff
    }

    #[inline]
    const fn offset(self) -> u32 {
        self.0 >> 20
    }
}

/// Slots of the contexts that occur. Other contexts share the slots of the first, which does no
/// harm.
#[derive(Default)]
pub(super) struct ContextSlots {
    slots: Vec<[TokenSlot; SLOTS]>,
    /// For each context, the index of its slots.
    index: [u8; CONTEXTS_MAX],
}

impl ContextSlots {
    pub(super) const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds the slots of a context.
    pub(super) fn add(&mut self, context: usize, frequencies: &Frequencies) {
        self.index[context] = self.slots.len().to_le_bytes()[0];
        let mut slots = [TokenSlot(0); SLOTS];
        for (token, (frequency, start)) in (0_u32..).zip(frequencies.ranges()) {
            let (start, end) = (start as usize, (start + frequency) as usize);
            for (slot, offset) in slots[start..end].iter_mut().zip(0_u32..) {
                *slot = TokenSlot(token | frequency << 8 | offset << 20);
            }
        }
        self.slots.push(slots);
    }
}

/// Reads tokens.
pub(super) struct TokenReader<'a> {
    slots: ContextSlots,
    states: [u32; STATES],
    words: &'a [[u8; 2]],
    word: usize,
    turn: usize,
}

impl<'a> TokenReader<'a> {
    /// Takes the number of words, the states and the words off `input`.
    pub(super) fn open(input: &mut ByteReader<'a>, slots: ContextSlots) -> Result<Self> {
        let count = input.len(input.remaining() / 2)?;
        let mut states = [0; STATES];
        for state in &mut states {
            *state = u32::from_le_bytes(input.array()?);
        }
        let words = input.take(2 * count)?.as_chunks::<2>().0;
        Ok(Self { slots, states, words, word: 0, turn: 0 })
    }

    /// Returns the next token, which has this context. Returns arbitrary tokens after the last
    /// word.
    #[inline]
    pub(super) fn take(&mut self, context: usize) -> u8 {
        let state = &mut self.states[self.turn % STATES];
        self.turn = self.turn.wrapping_add(1);
        let slots = &self.slots.slots[usize::from(self.slots.index[context])];
        let slot = slots[*state as usize % SLOTS];
        let high = *state >> SCALE_BITS;
        *state = slot.frequency().wrapping_mul(high).wrapping_add(slot.offset());
        if *state < STATE_MIN {
            let word = self.words.get(self.word).map_or(0, |word| u16::from_le_bytes(*word));
            *state = *state << 16 | u32::from(word);
            self.word = self.word.wrapping_add(1);
        }
        slot.token()
    }

    /// Returns true if the tokens taken so far are exactly the tokens that the words hold.
    pub(super) fn is_at_end(&self) -> bool {
        self.word == self.words.len() && self.states == [STATE_MIN; STATES]
    }
}
