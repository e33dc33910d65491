//! Tokens: how many a text has, which ids, and what an id looks like.
//!
//! There is no tokenizer behind it: each four bytes of a text, the last perhaps fewer, are one
//! token, and each id is written as a pronounceable word of its own.

use super::draw::{hash_bytes, mix};

/// Bytes of a text in one token.
const BYTES_PER_TOKEN: usize = 4;

/// How many tokens a text has; an empty text has one (a beginning-of-sequence token).
pub(super) fn count_tokens(text: &str) -> u64 {
    (text.len().div_ceil(BYTES_PER_TOKEN) as u64).max(1)
}

/// The token ids of a text, all below `vocabulary`; as many as [`count_tokens`] says.
pub(super) fn tokenize(text: &str, vocabulary: u32) -> Vec<u32> {
    let id = |piece: &[u8]| (hash_bytes(piece) % u64::from(vocabulary)) as u32;
    if text.is_empty() {
        return vec![id(b"")];
    }
    text.as_bytes().chunks(BYTES_PER_TOKEN).map(id).collect()
}

/// Appends the text of a token: a blank and one syllable for each digit of the id in base 80.
/// ASCII letters only, so that it stands in JSON as it is.
pub(super) fn write_token(id: u32, out: &mut Vec<u8>) {
    const CONSONANTS: &[u8; 16] = b"bdfgjklmnprstvwz";
    const VOWELS: &[u8; 5] = b"aeiou";
    out.push(b' ');
    let mut rest = id as usize;
    loop {
        let syllable = rest % 80;
        out.push(CONSONANTS[syllable / 5]);
        out.push(VOWELS[syllable % 5]);
        rest /= 80;
        if rest == 0 {
            return;
        }
    }
}

/// The id of an answer's `index`-th token.
pub(super) fn token_at(answer_seed: u64, index: u32, vocabulary: u32) -> u32 {
    let drawn = mix(answer_seed.wrapping_add(u64::from(index)));
    (drawn % u64::from(vocabulary)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_as_many_ids_as_tokens() {
        for text in ["", "a", "abcd", "abcde", "žluťoučký kůň"] {
            let ids = tokenize(text, 100);
            assert_eq!(ids.len() as u64, count_tokens(text), "{text:?}");
            assert!(ids.iter().all(|id| *id < 100));
        }
        assert_eq!(count_tokens("abcdefgh"), 2);
    }

    #[test]
    fn an_id_is_its_syllables() {
        let shown = |id| {
            let mut out = Vec::new();
            write_token(id, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(0), " ba");
        assert_eq!(shown(79), " zu");
        assert_eq!(shown(80), " babe");
        let mut all: Vec<String> = (0..10_000).map(shown).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10_000);
    }
}
