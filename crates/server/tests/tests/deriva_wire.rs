//! Deriva's messages, declared here by hand with the numbers that its clients use: what the .proto file says is not
//! asked.

use std::collections::HashMap;

use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Data {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Flag {
    #[prost(bool, tag = "1")]
    pub(crate) yes: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRecipe {
    #[prost(string, tag = "1")]
    pub(crate) function_name: String,
    #[prost(string, tag = "2")]
    pub(crate) function_version: String,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) inputs: Vec<Vec<u8>>,
    #[prost(map = "string, string", tag = "4")]
    pub(crate) params: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResolveAnswer {
    #[prost(bool, tag = "1")]
    pub(crate) found: bool,
    #[prost(string, tag = "2")]
    pub(crate) function_name: String,
    #[prost(string, tag = "3")]
    pub(crate) function_version: String,
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub(crate) inputs: Vec<Vec<u8>>,
    #[prost(map = "string, string", tag = "5")]
    pub(crate) params: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Invalidate {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) addr: Vec<u8>,
    #[prost(bool, tag = "2")]
    pub(crate) cascade: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InvalidateAnswer {
    #[prost(bool, tag = "1")]
    pub(crate) was_cached: bool,
    #[prost(uint64, tag = "2")]
    pub(crate) evicted_count: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cascade {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) addr: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) policy: String,
    #[prost(bool, tag = "3")]
    pub(crate) include_root: bool,
    #[prost(bool, tag = "4")]
    pub(crate) detail_addrs: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CascadeAnswer {
    #[prost(uint64, tag = "1")]
    pub(crate) evicted_count: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) traversed_count: u64,
    #[prost(uint32, tag = "3")]
    pub(crate) max_depth: u32,
    #[prost(uint64, tag = "4")]
    pub(crate) bytes_reclaimed: u64,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub(crate) evicted_addrs: Vec<Vec<u8>>,
    #[prost(uint64, tag = "6")]
    pub(crate) duration_micros: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusAnswer {
    #[prost(uint64, tag = "1")]
    pub(crate) recipe_count: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) blob_count: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) cache_entries: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) cache_size_bytes: u64,
    #[prost(double, tag = "5")]
    pub(crate) cache_hit_rate: f64,
    #[prost(string, tag = "6")]
    pub(crate) verification_mode: String,
    #[prost(uint64, tag = "7")]
    pub(crate) verification_total: u64,
    #[prost(uint64, tag = "8")]
    pub(crate) verification_passed: u64,
    #[prost(uint64, tag = "9")]
    pub(crate) verification_failed: u64,
    #[prost(double, tag = "10")]
    pub(crate) verification_failure_rate: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Collect {
    #[prost(uint64, tag = "1")]
    pub(crate) grace_period_secs: u64,
    #[prost(bool, tag = "2")]
    pub(crate) dry_run: bool,
    #[prost(bool, tag = "3")]
    pub(crate) detail_addrs: bool,
    #[prost(uint64, tag = "4")]
    pub(crate) max_removals: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CollectAnswer {
    #[prost(uint64, tag = "1")]
    pub(crate) blobs_removed: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) recipes_removed: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) cache_entries_removed: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) bytes_reclaimed_blobs: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) bytes_reclaimed_cache: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) total_bytes_reclaimed: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) live_blobs: u64,
    #[prost(uint64, tag = "8")]
    pub(crate) live_recipes: u64,
    #[prost(uint64, tag = "9")]
    pub(crate) pinned_count: u64,
    #[prost(uint64, tag = "10")]
    pub(crate) duration_micros: u64,
    #[prost(bytes = "vec", repeated, tag = "11")]
    pub(crate) removed_addrs: Vec<Vec<u8>>,
    #[prost(bool, tag = "12")]
    pub(crate) dry_run: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Pins {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) addrs: Vec<Vec<u8>>,
    #[prost(uint64, tag = "2")]
    pub(crate) count: u64,
}

/// A client as Deriva's users have one: defaults, and four megabytes a message.
#[derive(Clone)]
pub(crate) struct Deriva(pub(crate) Channel);

impl Deriva {
    async fn ready(&self) -> Grpc<Channel> {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        grpc
    }

    pub(crate) async fn call<Q, R>(&self, method: &'static str, request: Q) -> Result<R, Status>
    where
        Q: Message + Default + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        let path = format!("/deriva.Deriva/{method}").parse().unwrap();
        let codec = ProstCodec::<Q, R>::default();
        Ok(self.ready().await.unary(Request::new(request), path, codec).await?.into_inner())
    }

    pub(crate) async fn stream(&self, request: Request<Data>) -> Result<Streaming<Data>, Status> {
        let codec = ProstCodec::<Data, Data>::default();
        let path = "/deriva.Deriva/Get".parse().unwrap();
        Ok(self.ready().await.server_streaming(request, path, codec).await?.into_inner())
    }

    /// The pieces of a value, as they come.
    pub(crate) async fn pieces(&self, addr: &[u8]) -> Result<Vec<Vec<u8>>, Status> {
        let mut stream = self.stream(Request::new(Data { data: addr.to_vec() })).await?;
        let mut pieces = Vec::new();
        while let Some(piece) = stream.message().await? {
            pieces.push(piece.data);
        }
        Ok(pieces)
    }

    pub(crate) async fn get(&self, addr: &[u8]) -> Result<Vec<u8>, Status> {
        Ok(self.pieces(addr).await?.concat())
    }

    pub(crate) async fn leaf(&self, bytes: impl Into<Vec<u8>>) -> Vec<u8> {
        let put: Data = self.call("PutLeaf", Data { data: bytes.into() }).await.unwrap();
        put.data
    }

    pub(crate) async fn recipe(&self, function: &str, inputs: &[&[u8]]) -> Vec<u8> {
        let request = PutRecipe {
            function_name: function.to_owned(),
            function_version: "1.0.0".to_owned(),
            inputs: inputs.iter().map(|input| input.to_vec()).collect(),
            params: HashMap::new(),
        };
        let put: Data = self.call("PutRecipe", request).await.unwrap();
        put.data
    }
}
