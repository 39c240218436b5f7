/** The operations of an entity: list, create, read, update and delete. */
import { z } from 'zod'
import { answerOf, draftOf, type Entity, type Members } from '../actors/domain/entities/entity.js'
import type {
  EntityProtocol,
  MemberInvalid,
  RowsFull,
  WriteRefused,
} from '../actors/domain/entities/messages.js'
import type { Address } from '../runtime/kernel/protocol.js'
import { callerOf } from './request/caller.js'
import { PageQuery, pageReply, readPage } from './request/paging.js'
import { empty, json, problem, type Route, reply, type ReplyRule, route } from './route.js'
import { idempotencyRefusals } from './routes/operations/idempotency-refusals.js'

type Text = { readonly summary: string; readonly description?: string }
type Bearer = {
  readonly scheme: 'bearer'
  readonly scopes: readonly string[]
  readonly direct?: 'required'
  readonly controlPlaneTokens?: 'operator'
}

type EntityOperations<M extends Members, Refused extends { readonly tag: string }> = {
  readonly entity: Entity<M>
  readonly path: string
  /** `API resource`, with its article, and its plural. */
  readonly noun: { readonly a: string; readonly one: string; readonly many: string }
  readonly operationIds: Readonly<Record<keyof EntityProtocol<M, Refused>, string>>
  readonly texts: {
    readonly create: Text
    readonly update: Pick<Text, 'description'>
    readonly remove: Pick<Text, 'description'>
    /** Default: a tenant can have at most so many. */
    readonly full?: (most: number) => string
    /** When another object has what is unique. */
    readonly conflict?: string
  }
  readonly capabilities: readonly string[]
  readonly readers: Bearer
  readonly managers: Bearer
  readonly refusals: {
    readonly [T in Exclude<Refused['tag'], WriteRefused['tag']>]: ReplyRule<
      Extract<Refused, { tag: T }>
    >
  }
}

export const MemberPath = z.object({ id: z.string().max(64) })

/** The reply to an unknown id, and to one of another tenant. */
export const unknownRow = (one: string) =>
  problem(404, 'not-found', { detail: `The ${one} does not exist.` })

export const invalidMember = problem(400, 'bad-request', ({ pointer, detail }: MemberInvalid) => ({
  detail,
  errors: [{ pointer: `#${pointer}`, detail }],
}))

/** Declares the five operations. */
export function entityRoutes<M extends Members, Refused extends { readonly tag: string }>(
  handled: Pick<Address<EntityProtocol<M, Refused>>, 'name' | 'protocol'>,
  operations: EntityOperations<M, Refused>,
): readonly Route[] {
  const { entity, path, noun, operationIds, texts, readers, managers } = operations
  // Its own refusals have replies, which the type of `operations` demands. The compiler cannot see it for a type parameter.
  const address = handled as unknown as Address<EntityProtocol<M, never>>
  const refusals = {
    ...(operations.refusals as Record<never, never>),
    invalid: invalidMember,
    conflict: problem(409, 'conflict', { detail: texts.conflict ?? 'Another object has this.' }),
  }
  const found = reply(200, entity.answer, ({ row }: { row: Parameters<typeof answerOf<M>>[1] }) =>
    answerOf(entity, row),
  )
  const unknown = unknownRow(noun.one)
  const full = problem(409, 'conflict', ({ most }: RowsFull) => ({
    detail: texts.full?.(most) ?? `A tenant can have at most ${most} ${noun.many}.`,
  }))
  const shared = { tags: [capitalized(noun.many)], exposure: 'public' } as const
  const single = { ...shared, path: `${path}/{id}`, params: MemberPath }
  return [
    route(address, 'list', {
      ...shared,
      method: 'GET',
      path,
      operationId: operationIds.list,
      summary: `List the ${noun.many} of the tenant, newest first`,
      security: readers,
      query: PageQuery,
      message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
      replies: {
        listed: pageReply(entity.answer, ({ rows }) => rows.map((row) => answerOf(entity, row))),
      },
    }),
    route(address, 'create', {
      ...shared,
      ...texts.create,
      method: 'POST',
      path,
      operationId: operationIds.create,
      security: managers,
      capabilities: operations.capabilities,
      idempotent: true,
      body: json(entity.create),
      message: (request) => ({
        caller: callerOf(request),
        idempotency: request.idempotency,
        draft: draftOf(entity, request.body),
      }),
      replies: {
        created: reply(
          201,
          entity.answer,
          ({ row }) => answerOf(entity, row),
          ({ row }) => ({ location: `${path}/${row.id}` }),
        ),
        ...refusals,
        full,
        ...idempotencyRefusals,
      },
    }),
    route(address, 'read', {
      ...single,
      method: 'GET',
      operationId: operationIds.read,
      summary: `Read ${noun.a} ${noun.one}`,
      security: readers,
      message: (request) => ({ caller: callerOf(request), id: request.params.id }),
      replies: { found, unknown },
    }),
    route(address, 'update', {
      ...single,
      ...texts.update,
      method: 'PATCH',
      operationId: operationIds.update,
      summary: `Change ${noun.a} ${noun.one}`,
      security: managers,
      body: json(entity.update),
      message: (request) => ({
        caller: callerOf(request),
        id: request.params.id,
        change: draftOf(entity, request.body),
      }),
      replies: { found, ...refusals, unknown },
    }),
    route(address, 'remove', {
      ...single,
      ...texts.remove,
      method: 'DELETE',
      operationId: operationIds.remove,
      summary: `Delete ${noun.a} ${noun.one}`,
      security: managers,
      message: (request) => ({ caller: callerOf(request), id: request.params.id }),
      replies: { removed: empty(204), unknown },
    }),
  ]
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
