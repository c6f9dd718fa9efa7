use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_model::HttpSettings;
use anabranch_recipe::{Executor, Functions};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;

use super::*;

/// Jobs in a folder of their own, which is removed after them.
struct OpenJobs {
    datasets: Datasets,
    folder: Folder,
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

/// Waits for something that comes soon. Only a failing test waits this long.
#[allow(clippy::disallowed_methods, reason = "threads need a real bound")]
async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), wait).await.expect("it takes too long")
}

impl OpenJobs {
    fn open(change: impl FnOnce(&mut DatasetSettings)) -> OpenJobs {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("anabranch-jobs-{}-{number}", std::process::id()));
        let mut settings = DatasetSettings::new(&folder);
        change(&mut settings);
        let executor = Executor::in_memory(Functions::builtin()).unwrap();
        let engine = executor.engine();
        let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock())).unwrap();
        let runs = Runs::in_memory();
        OpenJobs {
            datasets: Datasets::open(settings, engine, client, &runs).unwrap(),
            folder: Folder(folder),
        }
    }

    /// The folders of accepted jobs.
    fn folders(&self) -> usize {
        let names = std::fs::read_dir(&self.folder.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| !name.to_string_lossy().ends_with(".new")).count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn submission(key: Option<&str>) -> Submission {
    let config = "columns:\n  - {name: id, column_type: sampler, sampler_type: uuid, params: {}}\n";
    let body = json!({ "config": config, "rows": 1, "demo": true }).to_string();
    Submission::read(body.as_bytes(), key.map(str::to_owned)).unwrap()
}

/// A client that disconnects while its submission is checked leaves one job, which its retry finds.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_client_leaves_is_accepted_as_a_whole() {
    let jobs = OpenJobs::open(|_| {});
    let mut submitted = Box::pin(jobs.datasets.submit(submission(Some("order-7"))));
    let _ = (&mut submitted).now_or_never();
    drop(submitted);
    soon(async {
        while jobs.folders() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let again = soon(async {
        loop {
            match jobs.datasets.submit(submission(Some("order-7"))).await {
                Err(failure) if failure.code == Code::Aborted => tokio::task::yield_now().await,
                submitted => break submitted.unwrap(),
            }
        }
    })
    .await;
    assert_eq!(jobs.folders(), 1, "the retry finds the job");
    assert_eq!(jobs.datasets.shared.lock().by_id.keys().copied().collect::<Vec<_>>(), [again.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_submissions_stay_within_the_limit() {
    let jobs = OpenJobs::open(|settings| settings.kept_most = 3);
    let of = |client: usize| submission(None).with_client(&client.to_string());
    let submitted = join_all((0..8).map(|client| jobs.datasets.submit(of(client)))).await;
    let (accepted, refused): (Vec<_>, Vec<_>) = submitted.into_iter().partition(Result::is_ok);
    assert_eq!((accepted.len(), jobs.folders()), (3, 3));
    for failure in refused {
        assert_eq!(failure.err().unwrap().code, Code::ResourceExhausted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_half_of_the_jobs() {
    let refusal = async |jobs: &OpenJobs, client: &str| {
        let submitted = jobs.datasets.submit(submission(None).with_client(client)).await;
        submitted.err().map_or_else(String::new, |failure| failure.message)
    };
    let jobs = OpenJobs::open(|settings| settings.kept_most = 4);
    assert_eq!((refusal(&jobs, "a").await, refusal(&jobs, "a").await), (String::new(), String::new()));
    assert!(refusal(&jobs, "a").await.starts_with("this client has 2 datasets"));
    assert_eq!(refusal(&jobs, "b").await, "");
    let spec = std::fs::read_dir(&jobs.folder.0).unwrap().next().unwrap().unwrap().path().join("spec.json");
    let spec: spec::Spec = serde_json::from_slice(&std::fs::read(spec).unwrap()).unwrap();
    assert!(["a", "b"].contains(&&*spec.client), "a restart knows whose job it is: {}", spec.client);

    let jobs = OpenJobs::open(|settings| (settings.open_most, settings.builds_most) = (5, 1));
    // No build of these begins.
    jobs.datasets.shared.lock().building = 1;
    for _ in 0..3 {
        assert_eq!(refusal(&jobs, "a").await, "");
    }
    let message = refusal(&jobs, "a").await;
    assert!(message.starts_with("this client has 3 datasets, 3 of them not built"), "{message}");
    assert_eq!(refusal(&jobs, "b").await, "");
    assert!(refusal(&jobs, "c").await.starts_with("the server has 4 datasets, 5 of them not built"));
}
