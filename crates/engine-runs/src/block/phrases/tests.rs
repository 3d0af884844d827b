//! Codes of any value come back as it was, and a damaged model or code is never a panic.

use super::*;

/// A small generator, so that the samples are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

fn document(noise: &mut Noise) -> Vec<u8> {
    let word: String = (0..3 + noise.next() % 9).map(|_| char::from(b'a' + (noise.next() % 26) as u8)).collect();
    let mut value =
        format!("{{\"customerFullName\": \"{word}\", \"postalCode\": {}, \"digest\": ", noise.next() % 100_000);
    value.push_str("\u{1}\u{2}");
    let mut value = value.into_bytes();
    value.extend(noise.bytes(24));
    value.extend_from_slice(b"\"deliveryAddress\": null}");
    value
}

fn documents(count: usize) -> Vec<Vec<u8>> {
    let mut noise = Noise(7);
    (0..count).map(|_| document(&mut noise)).collect()
}

fn model() -> Model {
    let documents = documents(400);
    train(&documents.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn round_trip(encoder: &Encoder, decoder: &Decoder, value: &[u8]) -> usize {
    let mut scratch = vec![0xaa; 7];
    let coded = encoder.encode(value, &mut scratch);
    let mut output = vec![0xaa; value.len() + PHRASE_BYTES_MAX];
    decoder.decode(coded, &Task { input: 0, output: 0, length: value.len() }, &mut output);
    assert!(output[..value.len()] == *value);
    coded.len()
}

#[test]
fn values_round_trip_and_shrink() {
    let model = model();
    assert!(model.phrases.len() > 2, "field names are phrases");
    let (encoder, decoder) = (Encoder::new(&model), Decoder::new(&model));
    let mut noise = Noise(99);
    let (mut raw, mut coded) = (0, 0);
    for _ in 0..300 {
        let value = document(&mut noise);
        raw += value.len();
        coded += round_trip(&encoder, &decoder, &value);
    }
    assert!(coded * 9 < raw * 5, "{coded} of {raw}");
}

#[test]
fn what_the_sample_never_showed_round_trips_too() {
    let model = model();
    let (encoder, decoder) = (Encoder::new(&model), Decoder::new(&model));
    let mut noise = Noise(5);
    for length in (0..200).chain([1000, 4096, 16_384]) {
        round_trip(&encoder, &decoder, &noise.bytes(length));
        round_trip(&encoder, &decoder, &vec![0; length]);
        let text: Vec<u8> = documents(1 + length / 60).concat().into_iter().take(length).collect();
        round_trip(&encoder, &decoder, &text);
    }
}

#[test]
fn an_empty_or_tiny_sample_gives_a_usable_model() {
    for samples in [vec![], vec![b"".as_slice()], vec![b"a".as_slice()], vec![[7u8; 5000].as_slice()]] {
        let model = train(&samples);
        round_trip(&Encoder::new(&model), &Decoder::new(&model), b"anything at all \0\xff");
    }
}

#[test]
fn models_round_trip_and_refuse_damage() {
    let model = model();
    let bytes = model.encode();
    assert_eq!(Model::decode(&bytes), Some(model));
    for cut in 0..bytes.len() {
        assert_eq!(Model::decode(&bytes[..cut]), None);
    }
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x15;
        // Either refused, or a model that works without a panic.
        if let Some(model) = Model::decode(&damaged) {
            round_trip(&Encoder::new(&model), &Decoder::new(&model), b"customerFullName \x80\x81");
        }
    }
}

#[test]
fn wrong_bits_never_leave_the_output() {
    let decoder = Decoder::new(&model());
    let mut noise = Noise(11);
    for length in 0..300 {
        let input = noise.bytes(length % 40);
        let mut output = vec![0; length + PHRASE_BYTES_MAX];
        decoder.decode(&input, &Task { input: length % 50, output: 0, length }, &mut output);
    }
}
