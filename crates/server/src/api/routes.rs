//! The rows of the table.

use super::AnswerBody::Media;
use super::RequestBody::{Bytes, Json};
use super::{Needs, Route};
use crate::access::Scope;

const OPEN: Needs = Needs::Nothing;
const READ: Needs = Needs::Token(Scope::Read);
const RUN: Needs = Needs::Token(Scope::Run);
const ADMIN: Needs = Needs::Token(Scope::Admin);

const OCTETS: &str = "application/octet-stream";
const TEXT: &str = "text/plain";
const EVENTS: &str = "text/event-stream";

/// All routes of HTTP, by their area.
pub(crate) const ROUTES: &[Route] = &[
    // The server.
    Route::new("GET", "/healthz", OPEN, "Whether the process lives.").answers(Media(TEXT)),
    Route::new("GET", "/readyz", OPEN, "Whether the server takes requests; 503 once it shuts down.")
        .answers(Media(TEXT)),
    Route::new("GET", "/metrics", READ, "Metrics in the text format of Prometheus.").answers(Media(TEXT)),
    Route::new("GET", "/openapi.json", OPEN, "This document.").json("Document"),
    Route::new("GET", "/v1/config", ADMIN, "The settings of the server and where each comes from.")
        .json("Config"),
    // The console.
    Route::new("GET", "/", OPEN, "The page of the console.").answers(Media("text/html")),
    Route::new("GET", "/console/{*path}", OPEN, "The files of the console.").answers(Media(OCTETS)),
    // Blobs.
    Route::new("POST", "/v1/blobs", RUN, "Stores the body as a blob.").takes(Bytes).json("StoredBlob"),
    Route::new("PUT", "/v1/blobs", RUN, "Stores the body as a blob.").takes(Bytes).json("StoredBlob"),
    Route::new("GET", "/v1/blobs/{address}", READ, "The bytes of a blob; one Range, ETag.")
        .answers(Media(OCTETS)),
    // Recipes.
    Route::new("POST", "/v1/recipes", RUN, "Adds a recipe, or a list of recipes.")
        .takes(Json("Recipes"))
        .query(&[("unknown_function", "`refuse` (default) or `accept`")])
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
    .query(&[("timeout", "how long to wait, as in `500ms`")])
    .answers(Media(OCTETS)),
    // Plans.
    Route::new("GET", "/v1/plans", READ, "All plans with their versions and latencies.").json("Plans"),
    Route::new("POST", "/v1/plans/reload", ADMIN, "Loads all plans again; 409 if a file is wrong.")
        .json("ChangedPlans"),
    Route::new("GET", "/v1/plans/{name}", READ, "A plan: its parameters, graph and latencies.").json("Plan"),
    Route::new("POST", "/v1/plans/{name}/run", RUN, "Answers a request; `Accept`, `Request-Timeout`.")
        .takes(Json("PlanRequest"))
        .query(&[
            ("timeout", "how long the answer may take, as in `150ms`"),
            ("trace", "`true` keeps the run with its timeline"),
            ("by_output", "`true` for one list of rows per output"),
        ])
        .json("PlanAnswer"),
    Route::new("POST", "/v1/plans/{name}/reload", ADMIN, "Loads a plan again; 409 if its file is wrong.")
        .json("ChangedPlans"),
    Route::new("POST", "/v1/plans/{name}/promote", ADMIN, "Serves the version on trial to everybody.")
        .json("ChangedPlans"),
    Route::new("POST", "/v1/plans/{name}/rollback", ADMIN, "Gives up the version on trial.")
        .json("ChangedPlans"),
    // Graphs of recipes, functions.
    Route::new(
        "GET",
        "/v1/recipes/{target}/graph",
        READ,
        "The graph of a recipe, and which values are stored.",
    )
    .query(&[("most", "the most nodes, 1000 if not given")])
    .json("RecipeGraph"),
    Route::new("GET", "/v1/functions", READ, "The functions of recipes.").json("Functions"),
    // Names.
    Route::new("GET", "/v1/refs", READ, "Names in order.")
        .query(&[("after", "the name before the page"), ("limit", "names on the page, at most 10000")])
        .json("Names"),
    Route::new("GET", "/v1/refs/{name}", READ, "A name, its address and its history.").json("Name"),
    Route::new("PUT", "/v1/refs/{name}", RUN, "Gives a name an address; `If-Match`, `If-None-Match: *`.")
        .takes(Json("NewName"))
        .json("Name"),
    Route::new("DELETE", "/v1/refs/{name}", RUN, "Removes a name."),
    Route::new("GET", "/v1/status", READ, "How much is stored and what was done.").json("Status"),
    // Runs.
    Route::new("GET", "/v1/runs", READ, "The latest runs.")
        .query(&[
            ("kind", "`plan`, `recipe` or `dataset`"),
            ("name", "the name of the plan, recipe or dataset"),
            ("state", "`running`, `complete`, `degraded`, `failed` or `stopped`"),
            ("limit", "runs on the page, at most 1000"),
            ("before", "the id behind the page"),
        ])
        .json("Runs"),
    Route::new("GET", "/v1/runs/{id}", READ, "A run with its graph, timeline, request and ledger.")
        .json("Run"),
    Route::new("POST", "/v1/runs/{id}/cancel", RUN, "Asks a run under way to stop.").json("Cancelled"),
    Route::new("GET", "/v1/runs/{id}/events", READ, "The events of a run (server-sent events).")
        .query(&[("after", "the number of the event before the first")])
        .answers(Media(EVENTS)),
    Route::new("GET", "/v1/runs/{id}/{file}", READ, "`timeline.html`, `timeline.svg` or `timeline.json`.")
        .answers(Media(OCTETS)),
    Route::new("GET", "/v1/events", READ, "The starts and ends of all runs (server-sent events).")
        .query(&[("after", "the number of the event before the first")])
        .answers(Media(EVENTS)),
    // Datasets.
    Route::new("POST", "/v1/datasets", RUN, "Submits a dataset; `Idempotency-Key`.")
        .takes(Json("Submission"))
        .json("SubmittedDataset"),
    Route::new("GET", "/v1/datasets", READ, "The latest datasets.")
        .query(&[("limit", "datasets on the page, at most 200"), ("before", "the id behind the page")])
        .json("Datasets"),
    Route::new("GET", "/v1/datasets/{id}", READ, "Where a dataset stands.").json("Dataset"),
    Route::new("DELETE", "/v1/datasets/{id}", ADMIN, "Removes a dataset that has ended, with its files."),
    Route::new("POST", "/v1/datasets/{id}/cancel", RUN, "Asks a build to stop.").json("Cancelled"),
    Route::new("GET", "/v1/datasets/{id}/cells", READ, "One byte per cell of a dataset that is being built.")
        .query(&[
            ("from", "the first row"),
            ("to", "the row behind the last"),
            ("bucket", "rows that are combined"),
        ])
        .answers(Media(OCTETS)),
    Route::new("GET", "/v1/datasets/{id}/rows", READ, "Rows on disk.")
        .query(&[("limit", "rows on the page, at most 10000"), ("after", "rows in front of the page")])
        .json("Rows"),
    Route::new("GET", "/v1/datasets/{id}/errors", READ, "Failed cells.")
        .query(&[("limit", "cells on the page, at most 10000"), ("after", "cells in front of the page")])
        .json("CellErrors"),
    Route::new("GET", "/v1/datasets/{id}/report", READ, "The report as a page.").answers(Media("text/html")),
    Route::new("GET", "/v1/datasets/{id}/files", READ, "The files of a dataset.").json("Files"),
    Route::new("GET", "/v1/datasets/{id}/files/{*name}", READ, "One of its files.").answers(Media(OCTETS)),
    Route::new("GET", "/v1/datasets/{id}/download", READ, "All rows.")
        .query(&[("format", "`jsonl` (default), `csv` or `parquet`")])
        .answers(Media(OCTETS)),
];

const RECIPES: &str = "anabranch.recipe.v1.Recipes";
const PLANS: &str = "anabranch.plan.v1.Plans";
const DERIVA: &str = "deriva.Deriva";

/// The calls of gRPC: service, methods, needs. What is not here needs `admin`.
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
