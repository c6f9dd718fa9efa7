//! Imports and lists of the content of a store, on the wire.

use anabranch_content::{
    Class, Cost, Holder, ImportRecord, ImportReport, ImportedName, ListedBlob, ListedDerivation, Memo,
    RemovedItems, Root, RootSpace, Space, Time, Usage,
};

use super::{MalformedMessage, address, from_address, set};
use crate::proto::recipes as proto;

pub(crate) fn imported(reply: proto::ImportReply) -> Result<ImportReport, MalformedMessage> {
    let name = |it: proto::ImportedName| {
        let taken_by = it.taken_by.map(|it| address("taken_by", &it)).transpose()?;
        let address = address("address", &it.address)?;
        Ok(ImportedName { name: it.name, address, taken_by, is_skipped: it.is_skipped })
    };
    let mut result = ImportReport::default();
    result.items = reply.things;
    result.new = reply.new;
    result.bytes = reply.bytes;
    result.memos_left_out = reply.memos_left_out;
    result.names = reply.names.into_iter().map(name).collect::<Result<_, MalformedMessage>>()?;
    result.id = reply.id;
    Ok(result)
}

pub(crate) fn from_imported(result: &ImportReport) -> proto::ImportReply {
    let name = |it: &ImportedName| proto::ImportedName {
        name: it.name.clone(),
        address: from_address(&it.address),
        taken_by: it.taken_by.as_ref().map(from_address),
        is_skipped: it.is_skipped,
    };
    proto::ImportReply {
        things: result.items,
        new: result.new,
        bytes: result.bytes,
        memos_left_out: result.memos_left_out,
        names: result.names.iter().map(name).collect(),
        id: result.id.clone(),
    }
}

pub(crate) fn import_record(it: proto::ImportRecord) -> ImportRecord {
    let proto::ImportRecord { id, at, label, blobs, derivations, memos, is_whole } = it;
    ImportRecord { id, at: Time(at), label, blobs, derivations, memos, is_whole }
}

pub(crate) fn from_import_record(it: &ImportRecord) -> proto::ImportRecord {
    proto::ImportRecord {
        id: it.id.clone(),
        at: it.at.0,
        label: it.label.clone(),
        blobs: it.blobs,
        derivations: it.derivations,
        memos: it.memos,
        is_whole: it.is_whole,
    }
}

pub(crate) fn listed_blob(it: &proto::ListedItem) -> Result<ListedBlob, MalformedMessage> {
    let class = if it.acknowledged { Class::Acknowledged } else { Class::Derivable };
    Ok(ListedBlob { address: address("address", &it.address)?, size: it.size, class, at: Time(it.at) })
}

pub(crate) fn from_listed_blob(it: &ListedBlob) -> proto::ListedItem {
    proto::ListedItem {
        address: from_address(&it.address),
        at: it.at.0,
        size: it.size,
        acknowledged: it.class == Class::Acknowledged,
        ..proto::ListedItem::default()
    }
}

pub(crate) fn listed_derivation(it: &proto::ListedItem) -> Result<ListedDerivation, MalformedMessage> {
    let alias = it.alias.as_ref().map(|alias| address("alias", alias)).transpose()?;
    Ok(ListedDerivation { address: address("address", &it.address)?, alias, at: Time(it.at) })
}

pub(crate) fn from_listed_derivation(it: &ListedDerivation) -> proto::ListedItem {
    proto::ListedItem {
        address: from_address(&it.address),
        at: it.at.0,
        alias: it.alias.as_ref().map(from_address),
        ..proto::ListedItem::default()
    }
}

pub(crate) fn listed_memo(it: &proto::ListedItem) -> Result<Memo, MalformedMessage> {
    let output = address("output", it.output.as_deref().unwrap_or_default())?;
    let cost = Cost { cpu: std::time::Duration::from_micros(it.cpu_micros), ..Cost::default() };
    Ok(Memo { derivation: address("address", &it.address)?, output, size: it.size, cost, at: Time(it.at) })
}

pub(crate) fn from_listed_memo(it: &Memo) -> proto::ListedItem {
    proto::ListedItem {
        address: from_address(&it.derivation),
        at: it.at.0,
        size: it.size,
        output: Some(from_address(&it.output)),
        cpu_micros: u64::try_from(it.cost.cpu.as_micros()).unwrap_or(u64::MAX),
        ..proto::ListedItem::default()
    }
}

pub(crate) fn removed(reply: &proto::RemoveReply) -> RemovedItems {
    RemovedItems { blob: reply.blob, derivation: reply.derivation, memos: reply.memos }
}

fn space(it: proto::Space) -> Space {
    Space { blobs: it.blobs, bytes: it.bytes, derivations: it.recipes }
}

fn from_space(it: Space) -> proto::Space {
    proto::Space { blobs: it.blobs, bytes: it.bytes, recipes: it.derivations }
}

fn root(it: proto::Root) -> Result<Root, MalformedMessage> {
    use proto::root::Of;
    Ok(match set("root", it.of)? {
        Of::Name(name) => Root::Name(name),
        Of::Pin(pin) => Root::Pin(address("pin", &pin)?),
        Of::History(name) => Root::History(name),
        Of::Import(proto::Import { id, label }) => Root::Import { id, label },
    })
}

fn from_root(it: &Root) -> proto::Root {
    use proto::root::Of;
    let of = match it {
        Root::Name(name) => Of::Name(name.clone()),
        Root::Pin(pin) => Of::Pin(from_address(pin)),
        Root::History(name) => Of::History(name.clone()),
        Root::Import { id, label } => Of::Import(proto::Import { id: id.clone(), label: label.clone() }),
    };
    proto::Root { of: Some(of) }
}

pub(crate) fn usage(reply: proto::UsageReply) -> Result<Usage, MalformedMessage> {
    let of_root = |it: proto::RootSpace| {
        let alone = space(set("alone", it.alone)?);
        Ok(RootSpace { root: root(set("root", it.root)?)?, reached: it.reached.map(space), alone })
    };
    let holder = |it: proto::Holder| {
        let is_shared = it.is_shared;
        Ok(it.root.map(root).transpose()?.map(|root| Holder { root, is_shared }))
    };
    Ok(Usage {
        put: space(set("put", reply.put)?),
        computed: space(set("computed", reply.computed)?),
        derivations: reply.recipes,
        memos: reply.memos,
        held: space(set("held", reply.held)?),
        roots_count: reply.roots_count,
        roots: reply.roots.into_iter().map(of_root).collect::<Result<_, MalformedMessage>>()?,
        holders: reply.holders.into_iter().map(holder).collect::<Result<_, MalformedMessage>>()?,
    })
}

pub(crate) fn from_usage(usage: &Usage) -> proto::UsageReply {
    let of_root = |it: &RootSpace| proto::RootSpace {
        root: Some(from_root(&it.root)),
        reached: it.reached.map(from_space),
        alone: Some(from_space(it.alone)),
    };
    let holder = |it: &Option<Holder>| proto::Holder {
        root: it.as_ref().map(|it| from_root(&it.root)),
        is_shared: it.as_ref().is_some_and(|it| it.is_shared),
    };
    proto::UsageReply {
        put: Some(from_space(usage.put)),
        computed: Some(from_space(usage.computed)),
        recipes: usage.derivations,
        memos: usage.memos,
        held: Some(from_space(usage.held)),
        roots_count: usage.roots_count,
        roots: usage.roots.iter().map(of_root).collect(),
        holders: usage.holders.iter().map(holder).collect(),
    }
}
