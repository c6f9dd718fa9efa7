//! Imports and lists: what is inside a store, on the wire.

use anabranch_content::{
    Class, Cost, ImportRecord, Imported, ImportedName, ListedBlob, ListedDerivation, Memo, RemovedItems, Time,
};

use super::{Bad, address, from_address};
use crate::proto::recipes as proto;

pub(crate) fn imported(reply: proto::ImportReply) -> Result<Imported, Bad> {
    let name = |it: proto::ImportedName| {
        let taken_by = it.taken_by.map(|it| address("taken_by", &it)).transpose()?;
        Ok(ImportedName { name: it.name, address: address("address", &it.address)?, taken_by })
    };
    let mut result = Imported::default();
    result.things = reply.things;
    result.new = reply.new;
    result.bytes = reply.bytes;
    result.memos_left_out = reply.memos_left_out;
    result.names = reply.names.into_iter().map(name).collect::<Result<_, Bad>>()?;
    result.id = reply.id;
    Ok(result)
}

pub(crate) fn from_imported(result: &Imported) -> proto::ImportReply {
    let name = |it: &ImportedName| proto::ImportedName {
        name: it.name.clone(),
        address: from_address(&it.address),
        taken_by: it.taken_by.as_ref().map(from_address),
    };
    proto::ImportReply {
        things: result.things,
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

pub(crate) fn listed_blob(it: &proto::Listed) -> Result<ListedBlob, Bad> {
    let class = if it.acknowledged { Class::Acknowledged } else { Class::Derivable };
    Ok(ListedBlob { address: address("address", &it.address)?, size: it.size, class, at: Time(it.at) })
}

pub(crate) fn from_listed_blob(it: &ListedBlob) -> proto::Listed {
    proto::Listed {
        address: from_address(&it.address),
        at: it.at.0,
        size: it.size,
        acknowledged: it.class == Class::Acknowledged,
        ..proto::Listed::default()
    }
}

pub(crate) fn listed_derivation(it: &proto::Listed) -> Result<ListedDerivation, Bad> {
    let alias = it.alias.as_ref().map(|alias| address("alias", alias)).transpose()?;
    Ok(ListedDerivation { address: address("address", &it.address)?, alias, at: Time(it.at) })
}

pub(crate) fn from_listed_derivation(it: &ListedDerivation) -> proto::Listed {
    proto::Listed {
        address: from_address(&it.address),
        at: it.at.0,
        alias: it.alias.as_ref().map(from_address),
        ..proto::Listed::default()
    }
}

pub(crate) fn listed_memo(it: &proto::Listed) -> Result<Memo, Bad> {
    let output = address("output", it.output.as_deref().unwrap_or_default())?;
    let cost = Cost { cpu: std::time::Duration::from_micros(it.cpu_micros), ..Cost::default() };
    Ok(Memo { derivation: address("address", &it.address)?, output, size: it.size, cost, at: Time(it.at) })
}

pub(crate) fn from_listed_memo(it: &Memo) -> proto::Listed {
    proto::Listed {
        address: from_address(&it.derivation),
        at: it.at.0,
        size: it.size,
        output: Some(from_address(&it.output)),
        cpu_micros: u64::try_from(it.cost.cpu.as_micros()).unwrap_or(u64::MAX),
        ..proto::Listed::default()
    }
}

pub(crate) fn removed(reply: &proto::RemoveReply) -> RemovedItems {
    RemovedItems { blob: reply.blob, derivation: reply.derivation, memos: reply.memos }
}
