/**
 * The official MCP conformance suite (@modelcontextprotocol/conformance) against POST /mcp. Most of its server
 * scenarios need tools, prompts and resources of a test server. docs/reference/conformance.md has the results.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { notThroughHttp2, THROUGH } from '../../support/fleet/through.js'
import { OTHER_NODE_MISSING, otherNode } from '../../support/other-node.js'
import { type Check, checkFolder, SUITE } from '../../support/operations/mcp-suite.js'
import { sharedService } from '../../support/service.js'
import { trustOfPrograms } from '../../support/service/trust.js'

const run = promisify(execFile)
/** Runs the server scenarios of a revision. @returns the checks of each scenario */
async function checksOf(t: ExecutionContext, revision: string) {
  notThroughHttp2()
  const running = await sharedService('plain', { transport: 'plain_http' })
  const out = checkFolder()
  t.teardown(async () => {
    out.remove()
    await running.end()
  })
  const options = ['--url', `${running.baseUrl}/mcp`, '--requirements', revision, '-o', out.path]
  // The exit code is 1, because the suite has no list of scenarios for servers without prompts and resources.
  const env = { ...process.env, ...trustOfPrograms() }
  const words = [SUITE, 'server', ...options]
  await run(await otherNode(22), words, { maxBuffer: 64 << 20, env }).catch(
    (error: Error & { code?: number }) => t.is(error.code, 1, error.message),
  )
  return out.checks()
}

const failed = (checks: readonly Check[]) =>
  checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id)

/** A check that fails because the feature is absent, or because a tool of the suite's own server is. */
const ABSENT =
  /There is no tool with this name|The method is not supported|Not testable|not found\. Available tools/

type Expected = {
  /** Scenarios without a failed check, and the least number of checks that succeed. */
  readonly passed: Readonly<Record<string, number>>
  /** Scenarios of which some checks need absent features: those that fail. */
  readonly partly: Readonly<Record<string, readonly string[]>>
  /** Beginnings of the names of scenarios that need absent features. */
  readonly absent: readonly string[]
}

const EXPECTED: Readonly<Record<string, Expected>> = {
  '2026-07-28': {
    passed: {
      'tools-list': 4,
      'dns-rebinding-protection': 2,
      'http-header-validation': 14,
      'server-sse-multiple-streams': 1,
    },
    partly: {
      'server-stateless': [
        'sep-2575-http-server-no-independent-requests-on-stream',
        'sep-2575-missing-capability-http-400',
        'sep-2575-server-no-log-without-loglevel',
        'sep-2575-server-rejects-undeclared-capability',
      ],
      caching: [
        'sep-2549-prompts-list-caching-hints',
        'sep-2549-resources-list-caching-hints',
        'sep-2549-resources-templates-list-caching-hints',
      ],
    },
    absent: ['completion-', 'tools-call-', 'resources-', 'prompts-', 'sep-2164-', 'tasks-'].concat([
      'input-required-result-',
      'json-schema-2020-12',
      'http-custom-header-',
    ]),
  },
  '2025-11-25': {
    passed: {
      'server-initialize': 2,
      ping: 2,
      'tools-list': 3,
      'dns-rebinding-protection': 2,
      'server-session-lifecycle': 0,
      'server-sse-multiple-streams': 0,
      'server-sse-polling': 0,
    },
    partly: {},
    absent: ['completion-', 'tools-call-', 'resources-', 'prompts-', 'elicitation-'].concat([
      'logging-',
      'json-schema-2020-12',
    ]),
  },
}

/**
 * Scenarios outside of their scope. They are for a server without TLS, and a proxy of tests serves https: the first one
 * expects an `Origin` of http to be accepted, the second one sends plain http.
 */
const OUT_OF_SCOPE =
  THROUGH === undefined ? [] : ['dns-rebinding-protection', 'http-header-validation']

for (const [revision, { passed: all, partly, absent }] of Object.entries(EXPECTED)) {
  const title = `MCP server scenarios of ${revision}`
  if (OTHER_NODE_MISSING !== null) {
    test.skip(`${title} (skipped: ${OTHER_NODE_MISSING})`, () => undefined)
    continue
  }
  test.serial(title, async (t) => {
    t.timeout(240_000)
    const checks = new Map(await checksOf(t, revision))
    for (const name of OUT_OF_SCOPE) checks.delete(name)
    const passed = Object.fromEntries(
      Object.entries(all).filter(([name]) => !OUT_OF_SCOPE.includes(name)),
    )
    const applicable = [...checks.keys()].filter(
      (name) => !absent.some((start) => name.startsWith(start)),
    )
    t.deepEqual(applicable.toSorted(), Object.keys({ ...passed, ...partly }).toSorted())
    for (const [name, atLeast] of Object.entries(passed)) {
      const found = checks.get(name)!
      t.deepEqual(failed(found), [], name)
      t.true(found.filter(({ status }) => status === 'SUCCESS').length >= atLeast, name)
    }
    for (const [name, ids] of Object.entries(partly)) {
      t.deepEqual(failed(checks.get(name)!).toSorted(), ids, name)
    }
    // Each message conforms to the schema of the revision, also in the other scenarios.
    for (const [name, found] of checks) t.false(failed(found).includes('wire-schema-valid'), name)
    const faults = [...checks].flatMap(([name, found]) =>
      name.startsWith('input-required-result-') || name.startsWith('tasks-')
        ? []
        : found.filter(({ status }) => status === 'FAILURE'),
    )
    for (const { id, errorMessage = '' } of faults) t.regex(errorMessage, ABSENT, id)
  })
}
