/** The official MCP conformance suite (@modelcontextprotocol/conformance), which writes its checks into a folder. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { toolRequire } from '../tools.js'

/** The script of the suite. It needs Node.js 22. */
export const SUITE = join(
  dirname(toolRequire.resolve('@modelcontextprotocol/conformance/package.json')),
  'dist',
  'index.js',
)

export type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

/** A folder for the checks, and what is in it. */
export function checkFolder() {
  const path = mkdtempSync(join(tmpdir(), 'svc-mcp-'))
  return {
    path,
    /** The checks by the name of their scenario. */
    checks: (): ReadonlyMap<string, readonly Check[]> =>
      new Map(
        readdirSync(path).map((folder) => [
          /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT/.exec(folder)![1]!,
          JSON.parse(readFileSync(join(path, folder, 'checks.json'), 'utf8')) as Check[],
        ]),
      ),
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
