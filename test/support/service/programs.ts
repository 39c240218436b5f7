/** External programs that a test needs. Where one is absent, the test is skipped. */
import { spawnSync } from 'node:child_process'
import test, { type ExecutionContext } from 'ava'
import { program } from './program.js'

export { program } from './program.js'

/**
 * A test that needs a program. Without the program it is skipped under a title that says so, which
 * the summary of the run shows. Programs of a file run one after another: each has its own processes.
 *
 * @param probe arguments with which the program succeeds where it has the libraries that the test needs.
 */
export function testWithProgram(
  name: string,
  title: string,
  body: (t: ExecutionContext, path: string) => Promise<void> | void,
  probe?: readonly string[],
): void {
  const path = program(name)
  const isWhole = path !== undefined && (probe === undefined || spawnSync(path, probe).status === 0)
  const missing = path === undefined ? name : `a library of ${name}`
  if (!isWhole) test.skip(`${title} (skipped: ${missing} is not installed)`, () => undefined)
  else test.serial(title, (t) => body(t, path))
}
