//! Records come back as they went, and nothing else comes back.

mod removal;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::facts::{Class, Cost, NameChange, RemovalReason, Time};
use crate::{Address, Disk, Memory, Open};

const SALT: Salt = Salt(0x5eed);

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 32]>().prop_map(Address::from_bytes)
}

fn addresses() -> impl Strategy<Value = Vec<Address>> {
    prop::collection::vec(address(), 0..4)
}

fn payload() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn fact() -> impl Strategy<Value = Fact> {
    let named = (any::<u64>(), prop::option::of(address()))
        .prop_map(|(at, address)| NameChange { at: Time(at), address });
    let what =
        prop_oneof![Just(ItemKind::Blob), Just(ItemKind::Derivation), address().prop_map(ItemKind::Memo)];
    let removed = (address(), what, addresses()).prop_map(|(address, what, edges)| ItemRemoval {
        address,
        what,
        edges,
    });
    let why = prop::sample::select(RemovalReason::ALL.to_vec());
    let cost = (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(cpu, tokens, micros)| Cost {
        cpu: std::time::Duration::from_nanos(cpu),
        tokens,
        micros,
    });
    prop_oneof![
        (address(), payload()).prop_map(|(address, bytes)| Fact::Blob { address, bytes }),
        (address(), any::<u64>(), any::<u64>()).prop_map(|(address, number, len)| Fact::File {
            address,
            number,
            len
        }),
        address().prop_map(|address| Fact::Touch { address }),
        (address(), prop::option::of(address()), ".{0,20}", payload())
            .prop_map(|(address, alias, context, bytes)| Fact::Derivation { address, alias, context, bytes }),
        (address(), address(), any::<u64>(), cost, addresses()).prop_map(
            |(derivation, output, size, cost, inputs)| Fact::Memo { derivation, output, size, cost, inputs }
        ),
        address().prop_map(|address| Fact::Pin { address }),
        address().prop_map(|address| Fact::Unpin { address }),
        (".{0,20}", prop::collection::vec(named, 0..4))
            .prop_map(|(name, history)| Fact::Name { name, history }),
        (why, prop::collection::vec(removed, 0..4)).prop_map(|(why, items)| Fact::Remove { why, items }),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let class = prop::sample::select(vec![Class::Derivable, Class::Acknowledged]);
    (any::<u64>(), class, fact()).prop_map(|(at, class, fact)| Record { at: Time(at), class, fact })
}

fn encoded(record: &Record) -> Bytes {
    let mut bytes = Vec::new();
    record.encode(SALT, &mut bytes);
    bytes.into()
}

/// A segment with these bytes behind its front, and all that a scan of it finds.
fn scan(records: &[Record], damage: impl FnOnce(&mut Vec<u8>)) -> (Vec<Record>, Vec<Damage>) {
    let disk = Arc::new(Memory::new());
    let segments = Segments::new(Arc::clone(&disk) as Arc<dyn Disk>, SALT).unwrap();
    let file = segments.create(1).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0, crate::Wait::Yes).unwrap();
    for record in records {
        record.encode(SALT, &mut bytes);
    }
    damage(&mut bytes);
    file.set_len(0).unwrap();
    file.write_at(&bytes, 0).unwrap();
    assert!(disk.open(Path::new("log/00000001.log"), Open::Read).is_ok());
    let mut found = Vec::new();
    let damage = segments.scan(1, 0, &mut |place, record| {
        assert_eq!(segments.record(place, crate::Wait::Yes).unwrap().as_ref(), Some(&record));
        found.push(record);
        Ok(())
    });
    (found, damage.unwrap())
}

proptest! {
    #[test]
    fn a_record_comes_back_as_it_went(record in record()) {
        prop_assert_eq!(Record::decode_whole(SALT, &encoded(&record)), Some(record));
    }

    #[test]
    fn a_record_with_a_changed_byte_does_not_come_back(record in record(), at in any::<prop::sample::Index>(), by in 1u8..) {
        let mut bytes = encoded(&record).to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert_eq!(Record::decode_whole(SALT, &bytes.into()), None);
    }

    #[test]
    fn a_record_of_another_log_does_not_come_back(record in record()) {
        prop_assert_eq!(Record::decode_whole(Salt(1), &encoded(&record)), None);
    }

    #[test]
    fn any_bytes_are_a_record_or_not(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from(bytes);
        if let Some(record) = Record::decode_whole(SALT, &bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }

    #[test]
    fn damage_hides_just_what_it_hits(
        records in prop::collection::vec(record(), 1..8),
        at in any::<prop::sample::Index>(),
        by in 1u8..,
    ) {
        let lens: Vec<usize> = records.iter().map(|record| encoded(record).len()).collect();
        let at = 20 + at.index(lens.iter().sum());
        let (found, damage) = scan(&records, |bytes| bytes[at] ^= by);
        let mut end = 20;
        let hit = lens.iter().position(|len| { end += len; at < end }).unwrap();
        let mut whole = records;
        whole.remove(hit);
        prop_assert_eq!(found, whole);
        prop_assert_eq!(damage, [Damage { segment: 1, from: (end - lens[hit]) as u64, to: end as u64 }]);
    }

    #[test]
    fn a_cut_leaves_the_records_before_it(records in prop::collection::vec(record(), 1..8), at in any::<prop::sample::Index>()) {
        let lens: Vec<usize> = records.iter().map(|record| encoded(record).len()).collect();
        let cut = 20 + at.index(lens.iter().sum::<usize>() + 1);
        let (found, damage) = scan(&records, |bytes| bytes.truncate(cut));
        let mut end = 20;
        let whole = lens.iter().take_while(|len| { end += **len; end <= cut }).count();
        prop_assert_eq!(&found[..], &records[..whole]);
        let kept: usize = 20 + lens[..whole].iter().sum::<usize>();
        prop_assert_eq!(damage.is_empty(), kept == cut);
    }
}

#[test]
fn a_blob_that_looks_like_a_record_is_none() {
    let fake = Record {
        at: Time(1),
        class: Class::Acknowledged,
        fact: Fact::Pin { address: Address::of(b"an attacker's") },
    };
    let mut bytes = Vec::new();
    fake.encode(Salt(0), &mut bytes);
    let blob = Fact::Blob { address: Address::of(&bytes), bytes: bytes.into() };
    let record = Record { at: Time(1), class: Class::Acknowledged, fact: blob };
    let (found, damage) = scan(&[record], |bytes| bytes[20] ^= 1);
    assert_eq!((found, damage.len()), (vec![], 1));
}

/// A blob that holds a copy of a segment holds genuine records. When it is damaged, they are not the log's.
#[test]
fn records_in_a_damaged_blob_are_not_found() {
    let touch = |what| Record {
        at: Time(1),
        class: Class::Acknowledged,
        fact: Fact::Touch { address: Address::of(what) },
    };
    let bytes = encoded(&touch(b"inside"));
    let blob = Fact::Blob { address: Address::of(&bytes), bytes };
    let blob = Record { at: Time(1), class: Class::Acknowledged, fact: blob };
    let end = FRONT + encoded(&blob).len();
    let [inside_address, first_of_body] = [FRONT + HEADER + 5, FRONT + HEADER];
    let lost = [Damage { segment: 1, from: FRONT as u64, to: end as u64 }];
    for at in [inside_address, first_of_body] {
        let (found, damage) = scan(&[blob.clone(), touch(b"behind")], |bytes| bytes[at] ^= 1);
        assert_eq!((found, &damage[..]), (vec![touch(b"behind")], &lost[..]), "a record follows");
        let (found, damage) = scan(std::slice::from_ref(&blob), |bytes| bytes[at] ^= 1);
        assert_eq!((found, &damage[..]), (vec![], &lost[..]), "the segment ends");
        let (found, damage) = scan(std::slice::from_ref(&blob), |bytes| {
            bytes[at] ^= 1;
            bytes.resize(end + 100, 0);
        });
        let all = Damage { to: end as u64 + 100, ..lost[0].clone() };
        assert_eq!((found, damage), (vec![], vec![all]), "zeros follow");
    }
    // A copy of a record, and more bytes of the blob that never reached the disk.
    let mut bytes = encoded(&touch(b"inside")).to_vec();
    bytes.resize(1000, 7);
    let torn = Fact::Blob { address: Address::of(&bytes), bytes: bytes.into() };
    let torn = Record { at: Time(1), class: Class::Acknowledged, fact: torn };
    let (found, damage) = scan(&[torn], |bytes| bytes.truncate(FRONT + 500));
    assert_eq!((found, damage.len()), (vec![], 1), "the blob is cut off");
}

/// The callers of one batch come back as one batch; a single caller does not wait.
#[test]
fn callers_are_gathered() {
    let gather = Gather::new();
    (0..3).for_each(|number| gather.push(number).unwrap());
    let mut batch = Vec::new();
    assert!(gather.take(0, &mut batch));
    assert_eq!(batch, [0, 1, 2]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|number| gather.push(number).unwrap()));
        let mut all = 0;
        while all < 1000 {
            batch.clear();
            assert!(gather.take(1000, &mut batch));
            all += batch.len();
        }
    });
    gather.push(7).unwrap();
    gather.close();
    assert_eq!(gather.push(8), Err(8));
    batch.clear();
    assert!(gather.take(100, &mut batch) && batch == [7]);
    batch.clear();
    assert!(!gather.take(1, &mut batch));
}

#[test]
fn deferred_requests_come_along() {
    let gather = Gather::new();
    let mut batch = Vec::new();
    gather.push_deferred(1).unwrap();
    gather.push(2).unwrap();
    gather.push_deferred(3).unwrap();
    assert!(gather.take(1, &mut batch) && batch == [1, 2, 3]);
    // By itself it comes too, a moment later.
    batch.clear();
    gather.push_deferred(4).unwrap();
    assert!(gather.take(1, &mut batch) && batch == [4]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..20_000).for_each(|number| gather.push_deferred(number).unwrap()));
        let mut all = Vec::new();
        while all.len() < 20_000 {
            batch.clear();
            assert!(gather.take(0, &mut batch));
            all.append(&mut batch);
        }
        assert!(all.into_iter().eq(0..20_000));
    });
    gather.push_deferred(5).unwrap();
    gather.close();
    assert_eq!(gather.push_deferred(6), Err(6));
    batch.clear();
    assert!(gather.take(0, &mut batch) && batch == [5]);
    batch.clear();
    assert!(!gather.take(0, &mut batch));
}
