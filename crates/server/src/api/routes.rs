//! The rows of the table.

use super::AnswerBody::JsonOrMedia;
use super::ParamKind::{AtLeast, Count, EventId, Flag, Id, Text, Time, Word};
use super::RequestBody::{Bytes, Json};
use super::RequestHeader::{
    IdempotencyKey, IfMatch, IfNew, IfNoneMatch, IfRange, LastEventId, LastEventNumber, Range, RequestTimeout,
};
use super::ResponseHeader::{ETag, Location, PlanVersion, RunId};
use super::{DATASETS_MOST, NODES_MOST, Needs, ROWS_MOST, RUNS_MOST, Route};
use crate::access::Scope;

const OPEN: Needs = Needs::Nothing;
const READ: Needs = Needs::Token(Scope::Read);
const RUN: Needs = Needs::Token(Scope::Run);
const ADMIN: Needs = Needs::Token(Scope::Admin);

const OCTETS: &[&str] = &["application/octet-stream"];
const TEXT: &[&str] = &["text/plain"];
const HTML: &[&str] = &["text/html"];
const EVENTS: &[&str] = &["text/event-stream"];
const CONSOLE: &[&str] = &["text/javascript", "text/css", "image/svg+xml"];
const TIMELINE: &[&str] = &["text/html", "image/svg+xml", "application/json"];
const ROWS: &[&str] = &["application/x-ndjson", "text/csv", "application/vnd.apache.parquet"];

/// The forms of a plan's answer besides JSON.
const OTHER_FORMS: &[&str] = &["application/x-ndjson", "application/vnd.apache.arrow.stream"];

/// All HTTP routes, by area.
pub(crate) const ROUTES: &[Route] = &[
    // The server.
    Route::new("GET", "/healthz", OPEN, "Whether the process lives.").media(TEXT),
    Route::new("GET", "/readyz", OPEN, "Whether the server takes requests; 503 once it shuts down.")
        .media(TEXT),
    Route::new("GET", "/metrics", READ, "Metrics in the text format of Prometheus.").media(TEXT),
    Route::new("GET", "/openapi.json", OPEN, "This document.").json("Document"),
    Route::new("GET", "/v1/config", ADMIN, "The settings of the server and where each comes from.")
        .json("Config"),
    // The console.
    Route::new("GET", "/", OPEN, "The page of the console.").media(HTML),
    Route::new("GET", "/console/{*path}", OPEN, "The files of the console.")
        .headers(&[IfNoneMatch])
        .answer_headers(&[ETag])
        .media(CONSOLE),
    // Blobs.
    Route::new("POST", "/v1/blobs", RUN, "Stores the body as a blob.")
        .takes(Bytes)
        .answer_headers(&[Location])
        .json("StoredBlob"),
    Route::new("PUT", "/v1/blobs", RUN, "Stores the body as a blob.")
        .takes(Bytes)
        .answer_headers(&[Location])
        .json("StoredBlob"),
    Route::new("GET", "/v1/blobs/{address}", READ, "The bytes of a blob; one Range, ETag.")
        .headers(&[Range, IfRange, IfNoneMatch])
        .answer_headers(&[ETag])
        .media(OCTETS),
    // Recipes.
    Route::new("POST", "/v1/recipes", RUN, "Adds a recipe, or a list of recipes.")
        .takes(Json("Recipes"))
        .query(&[("unknown_function", Word(&["refuse", "accept"]), "`refuse` if not given")])
        .json("AddedRecipes"),
    Route::new(
        "GET",
        "/v1/recipes/{target}",
        READ,
        "A recipe by its address or name, and its remembered value.",
    )
    .json("DescribedRecipe"),
    Route::new(
        "GET",
        "/v1/recipes/{target}/value",
        RUN,
        "The value of a recipe, computed unless it is stored.",
    )
    .query(&[("timeout", Time, "how long to wait, as in `500ms`")])
    .headers(&[Range, IfRange, IfNoneMatch, RequestTimeout])
    .answer_headers(&[ETag])
    .media(OCTETS),
    // Plans.
    Route::new("GET", "/v1/plans", READ, "All plans with their versions and latencies.").json("Plans"),
    Route::new("POST", "/v1/plans/reload", ADMIN, "Loads all plans again; 409 if a file is wrong.")
        .json("ChangedPlans"),
    Route::new("GET", "/v1/plans/{name}", READ, "A plan: its parameters, graph and latencies.").json("Plan"),
    Route::new("POST", "/v1/plans/{name}/run", RUN, "Answers a request; `Accept`, `Request-Timeout`.")
        .takes(Json("PlanRequest"))
        .query(&[
            ("timeout", Time, "how long the answer may take, as in `150ms`"),
            ("trace", Flag, "`true` keeps the run with its timeline"),
            ("by_output", Flag, "`true` for one list of rows per output"),
        ])
        .headers(&[RequestTimeout])
        .answer_headers(&[PlanVersion, RunId])
        .answers(JsonOrMedia("PlanAnswer", OTHER_FORMS)),
    Route::new("POST", "/v1/plans/{name}/reload", ADMIN, "Loads a plan again; 409 if its file is wrong.")
        .json("ChangedPlans"),
    Route::new("POST", "/v1/plans/{name}/promote", ADMIN, "Serves the version on trial to everybody.")
        .json("ChangedPlans"),
    Route::new("POST", "/v1/plans/{name}/rollback", ADMIN, "Gives up the version on trial.")
        .json("ChangedPlans"),
    // Recipe graphs and functions.
    Route::new(
        "GET",
        "/v1/recipes/{target}/graph",
        READ,
        "The graph of a recipe, and which values are stored.",
    )
    .query(&[("most", Count(1, NODES_MOST), "the most nodes, 1000 if not given")])
    .json("RecipeGraph"),
    Route::new("GET", "/v1/functions", READ, "The functions of recipes.").json("Functions"),
    // Names.
    Route::new("GET", "/v1/refs", READ, "Names in order.")
        .query(&[
            ("after", Text, "the name before the page"),
            ("limit", AtLeast(1), "names on the page, at most 10000"),
        ])
        .json("Names"),
    Route::new("GET", "/v1/refs/{name}", READ, "A name, its address and its history.").json("Name"),
    Route::new("PUT", "/v1/refs/{name}", RUN, "Gives a name an address; `If-Match`, `If-None-Match: *`.")
        .takes(Json("NewName"))
        .headers(&[IfMatch, IfNew])
        .json("Name"),
    Route::new("DELETE", "/v1/refs/{name}", RUN, "Removes a name; `If-Match`.").headers(&[IfMatch]),
    Route::new("GET", "/v1/status", READ, "How much is stored and what was done.").json("Status"),
    // Runs.
    Route::new("GET", "/v1/runs", READ, "The latest runs.")
        .query(&[
            ("kind", Word(&["plan", "recipe", "dataset"]), "the kind of the runs"),
            ("name", Text, "the name of the plan, recipe or dataset"),
            (
                "state",
                Word(&["running", "complete", "degraded", "failed", "stopped"]),
                "the state of the runs",
            ),
            ("limit", Count(1, RUNS_MOST), "runs on the page"),
            ("before", Id, "the id behind the page"),
        ])
        .json("Runs"),
    Route::new("GET", "/v1/runs/{id}", READ, "A run with its graph, timeline, request and ledger.")
        .json("Run"),
    Route::new("POST", "/v1/runs/{id}/cancel", RUN, "Asks a run under way to stop.").json("Cancelled"),
    Route::new("GET", "/v1/runs/{id}/events", READ, "The events of a run (server-sent events).")
        .query(&[("after", AtLeast(0), "the number of the event before the first")])
        .headers(&[LastEventNumber])
        .media(EVENTS),
    Route::new("GET", "/v1/runs/{id}/{file}", READ, "`timeline.html`, `timeline.svg` or `timeline.json`.")
        .media(TIMELINE),
    Route::new("GET", "/v1/events", READ, "The starts and ends of all runs (server-sent events).")
        .query(&[("after", EventId, "the id of the event before the first")])
        .headers(&[LastEventId])
        .media(EVENTS),
    // Datasets.
    Route::new("POST", "/v1/datasets", RUN, "Submits a dataset; `Idempotency-Key`.")
        .takes(Json("Submission"))
        .headers(&[IdempotencyKey])
        .answer_headers(&[Location])
        .json("SubmittedDataset"),
    Route::new("GET", "/v1/datasets", READ, "The latest datasets.")
        .query(&[
            ("limit", Count(1, DATASETS_MOST), "datasets on the page"),
            ("before", Id, "the id behind the page"),
        ])
        .json("Datasets"),
    Route::new("GET", "/v1/datasets/{id}", READ, "Where a dataset stands.").json("Dataset"),
    Route::new("DELETE", "/v1/datasets/{id}", ADMIN, "Removes a dataset that has ended, with its files."),
    Route::new("POST", "/v1/datasets/{id}/cancel", RUN, "Asks a build to stop.").json("Cancelled"),
    Route::new("GET", "/v1/datasets/{id}/cells", READ, "One byte per cell of a dataset that is being built.")
        .query(&[
            ("from", AtLeast(0), "the first row"),
            ("to", AtLeast(0), "the row behind the last"),
            ("bucket", AtLeast(0), "rows that are combined"),
        ])
        .media(OCTETS),
    Route::new("GET", "/v1/datasets/{id}/rows", READ, "Rows on disk.")
        .query(&[
            ("limit", Count(1, ROWS_MOST), "rows on the page"),
            ("after", AtLeast(0), "rows in front of the page"),
        ])
        .json("Rows"),
    Route::new("GET", "/v1/datasets/{id}/errors", READ, "Failed cells.")
        .query(&[
            ("limit", Count(1, ROWS_MOST), "cells on the page"),
            ("after", AtLeast(0), "cells in front of the page"),
        ])
        .json("CellErrors"),
    Route::new("GET", "/v1/datasets/{id}/report", READ, "The report as a page.").media(HTML),
    Route::new("GET", "/v1/datasets/{id}/files", READ, "The files of a dataset.").json("Files"),
    Route::new("GET", "/v1/datasets/{id}/files/{*name}", READ, "One of its files; one Range.")
        .headers(&[Range])
        .media(OCTETS),
    Route::new("GET", "/v1/datasets/{id}/download", READ, "All rows.")
        .query(&[("format", Word(&["jsonl", "csv", "parquet"]), "`jsonl` if not given")])
        .media(ROWS),
];

const RECIPES: &str = "anabranch.recipe.v1.Recipes";
const PLANS: &str = "anabranch.plan.v1.Plans";
const DERIVA: &str = "deriva.Deriva";

/// The gRPC calls: service, methods, needs. A call that is not listed needs `admin`.
pub(crate) const GRPC: &[(&str, &[&str], Needs)] = &[
    (
        RECIPES,
        &[
            "Find",
            "Resolve",
            "Pins",
            "History",
            "Refs",
            "Imports",
            "List",
            "FindPrefix",
            "Usage",
            "Functions",
            "Status",
            "Events",
        ],
        READ,
    ),
    (RECIPES, &["Put", "Add", "Get", "GetMany", "Invalidate", "Pin", "Unpin", "SetRef", "Export"], RUN),
    (RECIPES, &["Collect", "Scrub", "Import", "DropImport", "Remove"], ADMIN),
    (PLANS, &["List", "Describe"], READ),
    (PLANS, &["Run", "RunMany"], RUN),
    (PLANS, &["Reload"], ADMIN),
    (DERIVA, &["Resolve", "Status", "ListPins", "ClusterStatus"], READ),
    (
        DERIVA,
        &["PutLeaf", "PutRecipe", "Get", "Invalidate", "CascadeInvalidate", "Verify", "Pin", "Unpin"],
        RUN,
    ),
    (DERIVA, &["GarbageCollect"], ADMIN),
    ("grpc.health.v1.Health", &["Check", "Watch"], OPEN),
    ("grpc.reflection.v1.ServerReflection", &["ServerReflectionInfo"], READ),
    ("grpc.reflection.v1alpha.ServerReflection", &["ServerReflectionInfo"], READ),
];
