//! Small programs that parse in their language.

use super::random::Random;

/// The language that a prompt requests in the words of [`crate::conversation::code_suffix`]: `python`, `sql:postgres`.
pub(super) fn asked_for(prompt: &str) -> Option<String> {
    let (_, rest) = prompt.rsplit_once("Write the code in ")?;
    let (words, _) = rest.split_once(". ")?;
    match words.split_once(" (dialect: ") {
        Some((tag, dialect)) => Some(format!("{tag}:{}", dialect.trim_end_matches(')'))),
        None => Some(words.to_owned()).filter(|words| !words.contains(' ')),
    }
}

/// A fenced block with a small program.
pub(super) fn block(language: &str, random: &mut Random) -> String {
    let name = *random.choose(&["total", "average", "longest", "score"]);
    let number = 2 + random.below(90);
    let tag = language.split(':').next().unwrap_or(language);
    let body = match language {
        "sql:bigquery" => sql(name, number, ["INT64", "STRING", "NUMERIC"]),
        "sql:tsql" => sql(name, number, ["INT", "NVARCHAR(100)", "DECIMAL(10, 2)"]),
        "sql:sqlite" => sql(name, number, ["INTEGER", "TEXT", "REAL"]),
        _ if tag == "sql" => sql(name, number, ["INTEGER", "VARCHAR(100)", "DECIMAL(10, 2)"]),
        _ => program(language, name, number),
    };
    format!("Demo code, written offline:\n\n```{tag}\n{body}\n```")
}

fn sql(name: &str, number: usize, [int, text, amount]: [&str; 3]) -> String {
    format!(
        "-- demo text\nCREATE TABLE {name}_items (\n    id {int},\n    label {text},\n    amount {amount}\n);\n\n\
         SELECT label, SUM(amount) AS {name}_amount\nFROM {name}_items\nWHERE id > {number}\nGROUP BY label;"
    )
}

fn program(language: &str, name: &str, number: usize) -> String {
    let text = match language {
        "python" => {
            "\"\"\"Demo text.\"\"\"\n\n\ndef NAME(values):\n    \"\"\"Add the values up to NUMBER.\"\"\"\n    \
             result = 0\n    for value in values:\n        if value <= NUMBER:\n            result += value\n    \
             return result\n\n\nif __name__ == \"__main__\":\n    print(NAME([1, 2, NUMBER]))"
        }
        "javascript" => {
            "// demo text\nfunction NAME(values) {\n  return values.filter((value) => value <= NUMBER)\
             .reduce((sum, value) => sum + value, 0);\n}\n\nconsole.log(NAME([1, 2, NUMBER]));"
        }
        "typescript" => {
            "// demo text\nfunction NAME(values: number[]): number {\n  return values.filter((value) => value <= NUMBER)\
             .reduce((sum, value) => sum + value, 0);\n}\n\nconsole.log(NAME([1, 2, NUMBER]));"
        }
        "bash" => {
            "#!/usr/bin/env bash\n# demo text\nset -euo pipefail\nNAME=0\nfor value in 1 2 NUMBER; do\n  \
             NAME=$((NAME + value))\ndone\necho \"$NAME\""
        }
        "c" => {
            "/* demo text */\n#include <stdio.h>\n\nint main(void) {\n    int NAME = 0;\n    \
             for (int value = 1; value <= NUMBER; value++) {\n        NAME += value;\n    }\n    \
             printf(\"%d\\n\", NAME);\n    return 0;\n}"
        }
        "cpp" => {
            "// demo text\n#include <iostream>\n\nint main() {\n    int NAME = 0;\n    \
             for (int value = 1; value <= NUMBER; ++value) {\n        NAME += value;\n    }\n    \
             std::cout << NAME << std::endl;\n    return 0;\n}"
        }
        "csharp" => {
            "// demo text\nusing System;\n\nclass Program\n{\n    static void Main()\n    {\n        int NAME = 0;\n        \
             for (int value = 1; value <= NUMBER; value++)\n        {\n            NAME += value;\n        }\n        \
             Console.WriteLine(NAME);\n    }\n}"
        }
        "go" => {
            "// demo text\npackage main\n\nimport \"fmt\"\n\nfunc main() {\n\tNAME := 0\n\t\
             for value := 1; value <= NUMBER; value++ {\n\t\tNAME += value\n\t}\n\tfmt.Println(NAME)\n}"
        }
        "java" => {
            "// demo text\npublic class Main {\n    public static void main(String[] args) {\n        int NAME = 0;\n        \
             for (int value = 1; value <= NUMBER; value++) {\n            NAME += value;\n        }\n        \
             System.out.println(NAME);\n    }\n}"
        }
        "kotlin" => "// demo text\nfun main() {\n    val NAME = (1..NUMBER).sum()\n    println(NAME)\n}",
        "ruby" => "# demo text\nNAME = (1..NUMBER).sum\nputs NAME",
        "rust" => {
            "// demo text\nfn main() {\n    let NAME: u32 = (1..=NUMBER).sum();\n    println!(\"{NAME}\");\n}"
        }
        "scala" => {
            "// demo text\nobject Main {\n  def main(args: Array[String]): Unit = {\n    val NAME = (1 to NUMBER).sum\n    \
             println(NAME)\n  }\n}"
        }
        "swift" => "// demo text\nlet NAME = (1...NUMBER).reduce(0, +)\nprint(NAME)",
        "cobol" => {
            "      * demo text\n       IDENTIFICATION DIVISION.\n       PROGRAM-ID. DEMO.\n       PROCEDURE DIVISION.\n           \
             DISPLAY \"NUMBER\".\n           STOP RUN."
        }
        _ => "demo text NUMBER",
    };
    // Ruby reads a capitalised name as a constant, so the name is lower case everywhere.
    text.replace("NAME", name).replace("NUMBER", &number.to_string())
}
