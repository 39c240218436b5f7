/** The cases that every receiver of docs/guides/webhooks/webhook-receivers.md has to judge alike. */
import { execFileSync } from 'node:child_process'
import type { ExecutionContext } from 'ava'
import { body, type Case, CASES, good, webhook } from '../vectors/webhook-cases.js'

const NAMES = [
  'x-svc-signature-suite',
  'x-svc-signature-256',
  'x-svc-signature-max-age',
  'x-svc-timestamp',
  'x-svc-event',
  'x-svc-delivery',
]
/** The receivers support one secret. */
export const TABLE = CASES.filter(({ secrets }) => secrets === undefined || secrets.length === 1)

export function given({ headers, without, secrets, ageSecs = 0, ...one }: Case) {
  const all: Record<string, string | undefined> = { ...good(), ...headers }
  if (without !== undefined) delete all[without]
  const now = webhook.timestamp + ageSecs
  return { headers: all, secret: secrets?.[0] ?? webhook.secret, now, body: one.body ?? body }
}

const base64 = (value: string | Uint8Array) => Buffer.from(value).toString('base64')

function lineOf(one: Case): string {
  const { headers, secret, now, body: sent } = given(one)
  const named = NAMES.map((name) => headers[name])
  const fields = named.map((value) => (value === undefined ? '-' : base64(value)))
  return [...fields, base64(secret), base64(String(now)), base64(sent)].join('\t')
}

/** A program judges the table from its standard input, a line each. */
export function agrees(t: ExecutionContext, command: string, args: readonly string[]): void {
  const input = `${TABLE.map(lineOf).join('\n')}\n`
  const output = execFileSync(command, args, { input, encoding: 'utf8' })
  const verdicts = output.trim().split('\n')
  t.is(verdicts.length, TABLE.length)
  for (const [at, { title, verdict }] of TABLE.entries()) {
    t.is(verdicts[at], String(verdict === 'genuine'), title)
  }
}
