/** Checks of complete refusals: problem documents and OAuth errors. */
import type { ExecutionContext } from 'ava'
import type { Answer } from '../agents/journey.js'

/** A header by its name. Null: it must be absent. */
export type ExpectedHeaders = Readonly<Record<string, RegExp | null>>

export type Refusal = {
  readonly status: number
  readonly code: string
  readonly headers?: ExpectedHeaders | undefined
  /** Members of the body in addition to those that every refusal of its form has. */
  readonly members?: Readonly<Record<string, unknown>> | undefined
}

/**
 * RFC 6749 section 5.2: `error`, `error_description` and `error_uri`, plus only `request_id`, and never cached.
 */
export function isOAuthError(t: ExecutionContext, answer: Answer, expected: Refusal): void {
  const { status, code, headers = {}, members = {} } = expected
  t.is(answer.status, status, answer.text)
  t.is(answer.headers.get('content-type'), 'application/json')
  t.is(answer.headers.get('cache-control'), 'no-store')
  t.is(answer.body['error'], code, answer.text)
  const description = answer.body['error_description']
  t.true(typeof description === 'string' && description !== '', 'there are words for people')
  // The characters that RFC 6749 section 5.2 allows, and the typographic apostrophe.
  t.regex(String(description), /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  t.deepEqual(
    Object.keys(answer.body).sort(),
    ['error', 'error_description', 'error_uri', 'request_id', ...Object.keys(members)].sort(),
  )
  const page = `/errors/${code.replaceAll('_', '-')}`
  t.is(new URL(String(answer.body['error_uri'])).pathname, page)
  t.is(answer.body['request_id'], answer.headers.get('x-request-id'))
  hasMembers(t, answer, members)
  hasHeaders(t, answer, headers)
}

/** RFC 9457, with the members of docs/reference/errors.md. `name` is the last part of `type`. */
export function isProblem(
  t: ExecutionContext,
  answer: Answer,
  baseUrl: string,
  expected: Refusal & { readonly name: string },
): void {
  const { status, code, name, headers = {}, members = {} } = expected
  t.is(answer.status, status, answer.text)
  t.is(answer.headers.get('content-type'), 'application/problem+json')
  t.is(answer.headers.get('cache-control'), 'no-store')
  const { body } = answer
  t.is(body['type'], `${baseUrl}/errors/${name}`)
  t.is(body['status'], status)
  t.is(body['error'], code)
  t.is(body['request_id'], answer.headers.get('x-request-id'))
  for (const member of ['title', 'detail', 'instance']) {
    t.true(typeof body[member] === 'string' && body[member] !== '', `${member} is there`)
  }
  hasMembers(t, answer, members)
  hasHeaders(t, answer, headers)
}

function hasMembers(
  t: ExecutionContext,
  { body }: Answer,
  members: Readonly<Record<string, unknown>>,
): void {
  for (const [name, value] of Object.entries(members)) t.deepEqual(body[name], value, name)
}

function hasHeaders(t: ExecutionContext, answer: Answer, headers: ExpectedHeaders): void {
  for (const [name, form] of Object.entries(headers)) {
    const value = answer.headers.get(name)
    if (form === null) t.is(value, null, `there is no ${name}`)
    else t.regex(value ?? '', form, name)
  }
}
