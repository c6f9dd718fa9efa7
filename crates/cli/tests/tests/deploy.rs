//! The files in `deploy`: their command lines are ones that the binary takes, and find the project that they document.

use std::process::Command;

use crate::binary::root;
use crate::recipe::empty;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// The words of an instruction of the Dockerfile whose argument is a list.
fn words(dockerfile: &str, instruction: &str) -> Vec<String> {
    let line = dockerfile.lines().find_map(|line| line.strip_prefix(instruction)?.strip_prefix(' '));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no {instruction}"))).unwrap()
}

/// The settings that `serve` prints for these options. They must be ones that it knows.
fn printed(folder: &std::path::Path, command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(command)
        .arg("--print-config")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_container_serves_the_project_that_is_mounted() {
    let dockerfile = read("deploy/Dockerfile");
    let command = [words(&dockerfile, "ENTRYPOINT"), words(&dockerfile, "CMD")].concat();
    assert_eq!(command[0], "anabranch");
    // The folder that the documented command mounts is the one that the server is started in.
    let folder = dockerfile.lines().find_map(|line| line.strip_prefix("WORKDIR /project"));
    assert!(folder.is_some() && dockerfile.contains("docker run ") && dockerfile.contains(":/project:ro"));
    let project = empty("deploy_docker");
    std::fs::write(project.join("anabranch.toml"), "[serve]\ngrace = '7s'\n").unwrap();
    let settings = printed(&project, &command[1..]);
    let has = |start: &str, end: &str| {
        settings.lines().any(|line| line.starts_with(start) && line.trim_end().ends_with(end))
    };
    assert!(has("data", "flag") && settings.contains("/data/token"), "{settings}");
    assert!(has("grace", "anabranch.toml") && settings.contains("7 s"), "{settings}");
    let ignored = read(".dockerignore");
    assert!(ignored.lines().any(|line| line == "target"), "the build's folder is not sent to Docker");
}

#[test]
fn the_unit_starts_with_options_that_exist() {
    let unit = read("deploy/anabranch.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let folder = empty("deploy_systemd");
    std::fs::write(folder.join("anabranch.toml"), "").unwrap();
    let line = line.replace("/etc/anabranch/anabranch.toml", folder.join("anabranch.toml").to_str().unwrap());
    let command: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
    assert!(printed(&folder, &command).contains("/var/lib/anabranch/token"));
}
