//! Large values that are read again and again are served from memory.

use anabranch_content::{Address, Class, Config, Store};

async fn read(store: &Store, address: &Address) -> Vec<u8> {
    let mut reader = store.read(address, 0..u64::MAX).await.unwrap().unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await {
        bytes.extend(piece.unwrap());
    }
    bytes
}

#[tokio::test]
async fn a_large_value_that_is_read_again_is_served_from_memory() {
    let store = Store::in_memory(Config { cache_bytes: 16 << 20, ..Config::default() }).unwrap();
    let bytes: Vec<u8> = (0..1u32 << 20).map(|it| (it % 251) as u8).collect();
    let address = store.put(bytes.clone(), Class::Acknowledged).await.unwrap().address;
    assert_eq!(read(&store, &address).await, bytes);
    assert_eq!(store.stats().cache.entries, 0, "a value that is read once is not worth the memory");
    assert_eq!(read(&store, &address).await, bytes);
    assert_eq!(store.stats().cache.entries, 1);
    let hits = store.stats().cache.hits;
    assert_eq!(read(&store, &address).await, bytes);
    assert_eq!(store.stats().cache.hits, hits + 1);
    let mut part = store.read(&address, 1000..1010).await.unwrap().unwrap();
    assert_eq!(
        (part.size(), part.next().await.unwrap().unwrap()),
        (1 << 20, bytes[1000..1010].to_vec().into())
    );
}

#[tokio::test]
async fn a_value_that_would_fill_the_cache_is_read_from_its_file() {
    let store = Store::in_memory(Config { cache_bytes: 8 << 20, ..Config::default() }).unwrap();
    let bytes = vec![7; 1 << 20];
    let address = store.put(bytes.clone(), Class::Acknowledged).await.unwrap().address;
    for _ in 0..3 {
        assert_eq!(read(&store, &address).await, bytes);
    }
    assert_eq!(store.stats().cache.entries, 0);
}
