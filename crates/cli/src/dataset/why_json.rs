//! The history of a row as JSON.

use anabranch_dataset::{Answer, CallRequest, CellState, ForeseenCall, TracedCell};
use anabranch_dataset_inspect::{RowPlace, StageStory, StepStory};
use anabranch_model::Role;
use serde_json::{Value, json};

use super::why::KnownRow;
use super::why_text::{cost, fate, is_of, kind, models, names, paid_in_build, value_of};

/// The history of a row, or of one of its columns.
pub(super) fn json(known: &KnownRow, column: Option<&str>) -> Value {
    let story = &known.story;
    let stages: Vec<Value> = story.stages.iter().map(|stage| stage_json(known, stage, column)).collect();
    json!({
        "row": story.row,
        "dataset": story.metadata.dataset_name,
        "built_from": known.built,
        "stages": stages,
        "notes": known.notes,
    })
}

fn stage_json(known: &KnownRow, story: &StageStory, column: Option<&str>) -> Value {
    let names = names(known, story).into_iter().filter(|name| column.is_none_or(|column| column == name));
    let cells: Vec<Value> = names.map(|name| cell_json(known, story, &name)).collect();
    json!({
        "stage": story.stage,
        "row": story.row,
        // Ids have more digits than JavaScript's numbers.
        "id": story.id.to_string(),
        "place": place_json(&story.place),
        "steps": steps_json(&story.steps),
        "cells": cells,
    })
}

fn place_json(place: &RowPlace) -> Value {
    match place {
        RowPlace::InFile { file, position, rows } => {
            json!({"fate": "kept", "file": file, "position": position, "rows": rows})
        }
        RowPlace::Dropped => json!({"fate": "dropped"}),
        RowPlace::NotAccepted => json!({"fate": "not_accepted"}),
        RowPlace::Absent => json!({"fate": "absent"}),
        RowPlace::NoSuchPart { .. } => json!({"fate": "no_such_part"}),
    }
}

fn steps_json(steps: &StepStory) -> Value {
    match steps {
        StepStory::Passed => Value::Null,
        StepStory::Dropped { step, fate: found } => json!({"step": step, "dropped": fate(found)}),
        StepStory::Became { step, rows } => json!({"step": step, "rows": rows}),
        StepStory::NoSuchPart { step, rows, .. } => json!({"step": step, "parts": rows}),
    }
}

fn cell_json(known: &KnownRow, story: &StageStory, name: &str) -> Value {
    let cell = known.cells.iter().find(|cell| is_of(cell, name));
    let own = cell.filter(|cell| cell.column == name);
    let error = story.errors.iter().find(|error| error.column == name);
    let value = value_of(story, cell, name);
    let value = value.map(|value| serde_json::from_str::<Value>(&value.to_json()).unwrap_or_default());
    let alias = own.and_then(|cell| cell.models.first()).map(String::as_str);
    let calls = own.map_or(&[][..], |cell| &cell.calls).iter();
    let calls: Vec<Value> = calls.map(|call| call_json(known, alias, call)).collect();
    json!({
        "column": name,
        "kind": kind(known.config.as_ref(), name),
        "state": cell.map(state),
        "models": own.map(|cell| models(known, cell)),
        "reads": own.map(|cell| &cell.reads),
        "calls": calls,
        "error": error,
        "value": value,
    })
}

fn state(cell: &TracedCell) -> &'static str {
    match cell.state {
        CellState::Computed => "computed",
        CellState::Reused => "recorded",
        CellState::Lacking => "lacking",
        CellState::Unknown => "unknown",
        CellState::Skipped => "skipped",
        CellState::Failed => "failed",
    }
}

fn call_json(known: &KnownRow, alias: Option<&str>, call: &ForeseenCall) -> Value {
    let mut found = match &call.asked {
        CallRequest::Text(text) => json!({"text": &**text}),
        CallRequest::Chat(request) => {
            let messages: Vec<Value> = request
                .messages
                .iter()
                .map(|message| {
                    let role = match message.role {
                        Role::System => "system",
                        Role::User => "user",
                        Role::Assistant => "assistant",
                    };
                    json!({"role": role, "content": &*message.text})
                })
                .collect();
            json!({
                "messages": messages,
                "attempt": request.attempt + 1,
                "temperature": request.sampling.temperature,
                "top_p": request.sampling.top_p,
                "max_tokens": request.sampling.max_tokens,
            })
        }
    };
    let Some(recorded) = &call.recorded else { return found };
    match &recorded.answer {
        Answer::Reply(reply) => {
            found["reply"] = json!(&*reply.text);
            found["reasoning"] = json!(reply.reasoning.as_deref());
        }
        Answer::Refusal(message) => found["refusal"] = json!(message),
        Answer::Vector(dimensions) => found["dimensions"] = json!(dimensions),
    }
    found["input_tokens"] = json!(recorded.usage.input_tokens);
    found["output_tokens"] = json!(recorded.usage.output_tokens);
    found["took_ms"] = json!(recorded.took.map(|took| took.as_millis() as u64));
    found["cost"] = json!(cost(known, alias, recorded));
    found["at_ms"] = json!(recorded.at_ms);
    found["paid_by_this_build"] = json!(paid_in_build(known, recorded));
    found
}
