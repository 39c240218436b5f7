/** wrk as a load generator: a closed loop that repeats one request, or some in turn. */
import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Measured } from './harness.js'

const run = promisify(execFile)

/** Whether processes can be pinned to a core: servers to 0, generators to 1. */
export const CAN_PIN = spawnSync('taskset', ['-c', '1', 'true']).status === 0

/** The command prefix that pins a process to a core. */
export function pinned(core: 0 | 1): readonly string[] {
  return CAN_PIN ? ['taskset', '-c', String(core)] : []
}

export type Repeated = {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Bodies that take turns, instead of one. */
  readonly bodies?: readonly string[]
  /** Expects that every response is a refusal. Otherwise none may be one. */
  readonly refused?: boolean
}

/**
 * @throws for responses that are not 2xx (or that are, where refusals are expected), and for broken
 * connections.
 */
export async function wrk(
  url: string,
  { method, headers, body = '', bodies = [], refused = false }: Repeated,
  connections: number,
  ms: number,
): Promise<Measured> {
  // wrk takes a request body from a Lua file.
  const script = join(tmpdir(), `svc-bench-${randomUUID()}.lua`)
  const quoted = (text: string) => JSON.stringify(text)
  const lines = [
    `wrk.method = ${quoted(method)}`,
    ...(body === '' ? [] : [`wrk.body = ${quoted(body)}`]),
    ...Object.entries(headers).map(
      ([name, value]) => `wrk.headers[${quoted(name)}] = ${quoted(value)}`,
    ),
    ...(bodies.length === 0 ? [] : inTurn(bodies.map(quoted))),
  ]
  await writeFile(script, `${lines.join('\n')}\n`, { mode: 0o600 })
  try {
    const seconds = Math.max(1, Math.round(ms / 1000))
    const words = [...pinned(1), 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`]
    const args = ['--timeout', '30s', '--latency', '-s', script, url]
    const { stdout } = await run(words[0]!, [...words.slice(1), ...args])
    const [, requests = '0', time = '1'] = /(\d+) requests in ([\d.]+)s/.exec(stdout) ?? []
    const others = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? '0'
    const fits = others === (refused ? requests : '0') && !stdout.includes('Socket errors')
    if (!fits) throw new Error(`${url}: ${stdout}`)
    const millis = (share: string) => {
      const found = new RegExp(`${share}%\\s+([\\d.]+)(us|ms|s)`).exec(stdout)
      return Number(found?.[1]) * { us: 0.001, ms: 1, s: 1000 }[found?.[2] as 'us' | 'ms' | 's']
    }
    return {
      operations: Number(requests),
      seconds: Number(time),
      figures: { p50Ms: millis('50'), p99Ms: millis('99') },
    }
  } finally {
    await rm(script, { force: true })
  }
}

/** The lines that send the bodies in turn, built once before the load. */
function inTurn(bodies: readonly string[]): readonly string[] {
  return [
    `local bodies = {${bodies.join(',')}}`,
    'local requests = {}',
    'local at = 0',
    'function init() for i, body in ipairs(bodies) do requests[i] = wrk.format(nil, nil, nil, body) end end',
    'function request() at = at % #requests + 1 return requests[at] end',
  ]
}
