/** A small actor with a route for each feature of the pipeline. */
import { z } from 'zod'
import type { IdempotencyClaim } from '../../actors/domain/idempotency.js'
import {
  bytes,
  choice,
  constant,
  empty,
  form,
  formFields,
  html,
  json,
  oauthError,
  problem,
  raw,
  reply,
  route,
  type FormFields,
  type Route,
} from '../../gateway/route.js'
import { defineActor } from '../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../runtime/kernel/dependency.js'
import { address, type Ask } from '../../runtime/kernel/protocol.js'

export type ProbeNotes = {
  /** Handled messages, in order. */
  ran: string[]
  aborted: number
  /** Ends running waits. */
  release: Set<() => void>
}

export type ProbeProtocol = {
  hello: Ask<null, { tag: 'hello' }>
  page: Ask<null, { tag: 'page' }>
  document: Ask<null, { tag: 'document'; body: string; etag: string }>
  echo: Ask<
    { text: string; claim: IdempotencyClaim | null },
    | { tag: 'echoed'; text: string; replayed: boolean }
    | { tag: 'refused'; because: 'early' | 'taken' }
  >
  see: Ask<Record<string, unknown>, { tag: 'seen'; request: Record<string, unknown> }>
  token: Ask<{ fields: FormFields }, { tag: 'issued' } | { tag: 'refused'; error: 'invalid_grant' }>
  size: Ask<{ bytes: number }, { tag: 'sized'; bytes: number }>
  wait: Ask<null, { tag: 'waited' }>
  break: Ask<null, { tag: 'never' }>
  lack: Ask<null, { tag: 'never' }>
  remove: Ask<{ id: string }, { tag: 'removed' } | { tag: 'unknown' }>
}

export const probe = address<ProbeProtocol>('probe')

export const probeActor = defineActor<ProbeProtocol, { notes: ProbeNotes }>({
  address: probe,
  asks: {},
  mailbox: { capacity: 64, inflightMax: 16 },
  create: ({ notes }) => ({
    hello: async () => ({ tag: 'hello' }),
    page: async () => ({ tag: 'page' }),
    document: async () => ({ tag: 'document', body: '{"a":1}', etag: '"v1"' }),
    async echo({ text, claim }) {
      notes.ran.push(text)
      if (text === 'early') return { tag: 'refused', because: 'early' }
      if (text === 'taken') return { tag: 'refused', because: 'taken' }
      return { tag: 'echoed', text, replayed: claim?.key === 'again' }
    },
    see: async (request) => ({ tag: 'seen', request }),
    async token({ fields }) {
      const grant = fields.find(([name]) => name === 'grant_type')?.[1]
      return grant === 'good' ? { tag: 'issued' } : { tag: 'refused', error: 'invalid_grant' }
    },
    size: async ({ bytes }) => ({ tag: 'sized', bytes }),
    async wait(_, turn) {
      notes.ran.push('wait')
      await new Promise<void>((resolve) => {
        notes.release.add(resolve)
        turn.signal.addEventListener('abort', () => {
          notes.aborted += 1
          resolve()
        })
      })
      return { tag: 'waited' }
    },
    lack: async () => {
      throw new DependencyUnavailable('secret detail of a server')
    },
    break: async () => {
      throw new Error('secret detail of a defect')
    },
    remove: async ({ id }) => {
      notes.ran.push(`remove ${id}`)
      return id === 'known' ? { tag: 'removed' } : { tag: 'unknown' }
    },
  }),
})

const Status = z.object({ status: z.string() }).meta({ id: 'ProbeStatus' })
const facts = { tags: ['Probe'], exposure: 'public', security: { scheme: 'anonymous' } } as const
const bearer = { scheme: 'bearer', scopes: ['probe:read', 'probe:manage'] } as const

const echoReplies = {
  echoed: reply(
    201,
    z.object({ text: z.string() }).meta({ id: 'Echo' }),
    ({ text }: { text: string }) => ({ text }),
    ({ text }: { text: string }) => ({ location: `/echo/${text}` }),
  ),
  refused: choice(({ because }: { because: 'early' | 'taken' }) => because, {
    early: problem(425, 'too-early', { retryAfterSecs: 3 }),
    taken: problem(409, 'conflict', { detail: 'it is taken' }),
  }),
}

export const probeRoutes: readonly Route[] = [
  route(probe, 'hello', {
    ...facts,
    method: 'GET',
    path: '/health/live',
    operationId: 'probeLive',
    summary: 'Say that we live',
    throttle: 'none',
    message: () => null,
    replies: { hello: constant(200, Status, { status: 'ok' }) },
  }),
  route(probe, 'hello', {
    ...facts,
    method: 'GET',
    path: '/hello',
    operationId: 'probeHello',
    summary: 'Say hello',
    message: () => null,
    cors: 'public',
    capabilities: ['probe.hello', 'probe.again'],
    replies: { hello: constant(200, Status, { status: 'hello' }) },
  }),
  route(probe, 'page', {
    ...facts,
    method: 'GET',
    path: '/page',
    operationId: 'probePage',
    summary: 'Show a page',
    message: () => null,
    replies: { page: html(200, () => '<!doctype html><title>page</title>') },
  }),
  route(probe, 'document', {
    ...facts,
    method: 'GET',
    path: '/document',
    operationId: 'probeDocument',
    summary: 'Give a document',
    message: () => null,
    replies: {
      document: bytes(200, 'application/json', ({ body, etag }) => ({
        body,
        etag,
        maxAgeSecs: 60,
      })),
    },
  }),
  route(probe, 'echo', {
    ...facts,
    method: 'POST',
    path: '/echo',
    operationId: 'probeEcho',
    summary: 'Echo a text',
    idempotent: true,
    body: json(z.object({ text: z.string().min(1).max(10) })),
    message: ({ body, idempotency }) => ({ text: body.text, claim: idempotency }),
    replies: echoReplies,
  }),
  route(probe, 'see', {
    ...facts,
    method: 'POST',
    path: '/things/{thing_id}/parts/{part}',
    operationId: 'probeSee',
    summary: 'Show what a route sees',
    security: { scheme: 'optional' },
    params: z.object({ thing_id: z.string().max(20), part: z.string() }),
    query: z.object({ limit: z.coerce.number().int().min(1).optional() }),
    headers: z.object({ 'x-probe': z.string().max(5).optional() }),
    message: ({
      params,
      query,
      headers,
      principal,
      clientAddress,
      host,
      credentials,
      requestId,
    }) => ({
      params,
      query,
      headers,
      clientAddress,
      host,
      credentials,
      requestId,
      principal: principal?.subject ?? null,
    }),
    replies: { seen: reply(200, z.record(z.string(), z.unknown()), ({ request }) => request) },
  }),
  route(probe, 'hello', {
    ...facts,
    method: 'GET',
    path: '/guarded',
    operationId: 'probeGuarded',
    summary: 'Need a scope',
    security: bearer,
    message: () => null,
    replies: { hello: constant(200, Status, { status: 'guarded' }) },
  }),
  route(probe, 'hello', {
    ...facts,
    method: 'GET',
    path: '/direct',
    operationId: 'probeDirect',
    summary: 'Need a direct agent token',
    exposure: 'internal',
    security: { scheme: 'bearer', direct: 'required', subjects: ['agent'] },
    message: () => null,
    replies: { hello: constant(200, Status, { status: 'direct' }) },
  }),
  route(probe, 'remove', {
    ...facts,
    method: 'DELETE',
    path: '/things/{thing_id}',
    operationId: 'probeRemove',
    summary: 'Remove a thing',
    params: z.object({ thing_id: z.string() }),
    message: ({ params }) => ({ id: params.thing_id }),
    replies: { removed: empty(204), unknown: problem(404, 'not-found') },
  }),
  route(probe, 'token', {
    ...facts,
    method: 'POST',
    path: '/oauth/token',
    operationId: 'probeToken',
    summary: 'Speak OAuth',
    errors: 'oauth',
    security: { scheme: 'client' },
    cors: 'application-origins',
    body: formFields(z.object({ grant_type: z.string() })),
    message: ({ body }) => ({ fields: body }),
    replies: {
      issued: reply(200, z.object({ access_token: z.string() }), () => ({ access_token: 'a' })),
      refused: oauthError(400, 'invalid_grant', { description: 'no such grant' }),
    },
  }),
  route(probe, 'token', {
    ...facts,
    method: 'POST',
    path: '/oauth/form',
    operationId: 'probeForm',
    summary: 'Speak OAuth with single fields',
    errors: 'oauth',
    security: { scheme: 'client' },
    body: form(z.object({ grant_type: z.string() })),
    throttle: [{ policy: 'token', by: ({ body }) => (body as { grant_type: string }).grant_type }],
    message: ({ body }) => ({ fields: [['grant_type', body.grant_type] as const] }),
    replies: {
      issued: reply(200, z.object({ access_token: z.string() }), () => ({ access_token: 'a' })),
      refused: oauthError(400, 'invalid_grant'),
    },
  }),
  route(probe, 'hello', {
    ...facts,
    method: 'POST',
    path: '/registration',
    operationId: 'probeRegistration',
    summary: 'Be limited strictly',
    throttle: [{ policy: 'registration', by: 'address' }],
    message: () => null,
    replies: { hello: constant(200, Status, { status: 'registered' }) },
  }),
  route(probe, 'size', {
    ...facts,
    method: 'PUT',
    path: '/raw',
    operationId: 'probeRaw',
    summary: 'Take bytes',
    body: raw(['application/octet-stream'], { maxBytes: 256 * 1024 }),
    message: ({ body }) => ({ bytes: body.byteLength }),
    replies: { sized: reply(200, z.object({ bytes: z.number() }), ({ bytes }) => ({ bytes })) },
  }),
  route(probe, 'wait', {
    ...facts,
    method: 'POST',
    path: '/wait',
    operationId: 'probeWait',
    summary: 'Wait',
    message: () => null,
    replies: { waited: constant(200, Status, { status: 'waited' }) },
  }),
  route(probe, 'lack', {
    ...facts,
    method: 'GET',
    path: '/lack',
    operationId: 'probeLack',
    summary: 'Lack',
    message: () => null,
    replies: { never: constant(200, Status, { status: 'never' }) },
  }),
  route(probe, 'break', {
    ...facts,
    method: 'GET',
    path: '/break',
    operationId: 'probeBreak',
    summary: 'Break',
    deprecated: {
      since: new Date(1_700_000_000_000),
      sunset: new Date('2026-11-01'),
      link: 'https://id.test/docs',
      instead: 'probeHello',
    },
    message: () => null,
    replies: { never: empty(204) },
  }),
]
