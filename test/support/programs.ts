/** Programs from outside of npm that a test needs, and an honest skip where they are absent. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'

/** Debian keeps servers where the PATH of an ordinary user does not look. */
const SERVER_FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/sbin']

/** The path of a program, undefined when it is not installed. */
export function program(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SERVER_FOLDERS]
  return folders
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/**
 * A test that needs a program. Without it the test is skipped under a title that says so, which
 * the summary of the run shows.
 */
export function testWithProgram(
  name: string,
  title: string,
  body: (t: ExecutionContext, path: string) => Promise<void> | void,
): void {
  const path = program(name)
  if (path === undefined) test.skip(`${title} (skipped: ${name} is not installed)`, () => undefined)
  else test(title, (t) => body(t, path))
}
