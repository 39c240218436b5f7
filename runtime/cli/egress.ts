/** `svc egress URL`: one call with a credential of the vault, with options like curl's. */
import { createReadStream, statSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { type Command, Option } from 'commander'
import { METHODS } from '../../actors/domain/vault/egress.js'
import { httpClient } from '../clients/client/http.js'
import { reasonOf } from '../kernel/text/reasons.js'
import { tokenFrom } from '../clients/client/token-source.js'
import { systemClock } from '../kernel/clock.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { writeOutput } from './output.js'
import { chooseCredentials, parseNamed } from '../clients/svc-run/credential-choice.js'
import { type ServiceAnswer, serviceCalls } from '../clients/svc-run/service-calls.js'
import { checkAddress, collected, type ServiceAccess, serviceAccess } from './service-access.js'

/** The service refused, not the upstream. */
const EXIT_REFUSED = 1
/** The same as for curl --fail. */
const EXIT_FAILED = 22

type EgressOptions = ServiceAccess & {
  readonly request?: string
  readonly header: readonly string[]
  readonly data?: string
  readonly credential?: string
  readonly scheme?: string
  readonly buffer: boolean
  readonly include?: boolean
  readonly fail?: boolean
  readonly output?: string
}

/** Adds `egress` to the program. */
export function egressCommand(program: Command): void {
  serviceAccess(program.command('egress'), ' with vault:read')
    .description('call an API with a credential of the vault')
    .argument('<address>', 'https://…')
    .addOption(new Option('-X, --request <method>', 'GET, or POST with data').choices(METHODS))
    .option('-H, --header <line>', 'name: value', collected, [])
    .option('-d, --data <data>', 'the body; @file reads it from a file, @- from stdin')
    .option('--credential <id>', "the credential's id; default: the only credential of the host")
    .option(
      '--scheme <scheme>',
      'auth scheme of --credential; default: its listed auth_scheme, or bearer',
    )
    .option('--no-buffer', 'print the response without buffering')
    .option('-i, --include', 'print status and header fields first')
    .option('-f, --fail', `exit with ${EXIT_FAILED} when the status is 400 or more`)
    .option('-o, --output <file>', 'write the body to this file')
    .action(async (address: string, options: EgressOptions) => {
      try {
        process.exitCode = await call(address, options, process.stdout)
      } catch (error) {
        process.stderr.write(`svc egress: ${reasonOf(error)}\n`)
        process.exitCode = EXIT_REFUSED
      }
    })
}

async function call(address: string, options: EgressOptions, out: Writable): Promise<number> {
  checkAddress('--url', options.url)
  if (!URL.canParse(address)) {
    throw new Error(
      `the argument must be a URL like https://api.example.com/v1/models, not ${address}`,
    )
  }
  const token = await tokenFrom(options, readEnvironment())
  const client = httpClient(options.url)
  const calls = serviceCalls(options.url, token)
  try {
    const { hostname } = new URL(address)
    const { credential: id, scheme } = options
    if (scheme !== undefined && id === undefined) {
      throw new Error('--scheme needs --credential')
    }
    const named =
      id === undefined
        ? []
        : [parseNamed(`${hostname}=${id}${scheme === undefined ? '' : `,${scheme}`}`)]
    const choice = await chooseCredentials({ client, token, named, clock: systemClock })
    const chosen = await choice.of(hostname)
    if (chosen.tag === 'none') throw new Error(`there is no credential for ${hostname}`)
    if (chosen.tag === 'ambiguous') {
      throw new Error(
        `several credentials match, choose one with --credential: ${chosen.ids.join(', ')}`,
      )
    }
    const body = options.data === undefined ? null : dataOf(options.data)
    const answer = await calls.send({
      method: options.request ?? (body === null ? 'GET' : 'POST'),
      url: isAscii(address) ? address : new URL(address).href,
      headers: options.header.map(headerOf),
      body: body?.from ?? null,
      bodyBytes: body?.bytes ?? null,
      credential: chosen.credential,
      stream: !options.buffer,
      signal: new AbortController().signal,
    })
    return await show(answer, options, out)
  } finally {
    await Promise.all([client.close(), calls.close()])
  }
}

async function show(
  { statusCode, headers, body }: ServiceAnswer,
  { include, fail, output }: EgressOptions,
  out: Writable,
): Promise<number> {
  const status = String(headers['proxy-status'])
  if (include === true) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`)
    out.write(`${statusCode}\n${lines.join('\n')}\n\n`)
  }
  if (output === undefined) {
    for await (const chunk of body) {
      if (!out.write(chunk)) await new Promise((resolve) => out.once('drain', resolve))
    }
  } else await writeOutput(output, body)
  if (status.includes('error=')) {
    process.stderr.write(`svc egress: ${statusCode}, ${status}\n`)
    return EXIT_REFUSED
  }
  return fail === true && statusCode >= 400 ? EXIT_FAILED : 0
}

function headerOf(line: string): readonly [string, string] {
  const at = line.indexOf(':')
  if (at < 1) throw new Error(`a header must be "name: value", not ${JSON.stringify(line)}`)
  // In UTF-8, as curl sends it. undici expects a header value as bytes.
  const value = Buffer.from(line.slice(at + 1).trim()).toString('latin1')
  return [line.slice(0, at).trim(), value]
}

function isAscii(text: string): boolean {
  return /^[ -~]*$/.test(text)
}

function dataOf(data: string): {
  readonly from: Readable | Uint8Array
  readonly bytes: number | null
} {
  if (data === '@-') return { from: process.stdin, bytes: null }
  if (!data.startsWith('@')) {
    const bytes = Buffer.from(data)
    return { from: bytes, bytes: bytes.length }
  }
  const path = data.slice(1)
  const { size } = statSync(path)
  return { from: createReadStream(path), bytes: size }
}
