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

/// All routes of HTTP, by their area.
pub(crate) const ROUTES: &[Route] = &[
    // The server.
    Route::new("GET", "/healthz", OPEN, "Whether the process lives.").answers(Media(TEXT)),
    Route::new("GET", "/readyz", OPEN, "Whether the server takes requests; 503 once it shuts down.")
        .answers(Media(TEXT)),
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
