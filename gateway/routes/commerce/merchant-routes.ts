/** What the operations of merchants share. docs/reference/commerce.md. */
import { z } from 'zod'
import type {
  Activate,
  Changed,
  Found,
  Invalid,
  ListOf,
  Named,
  Unknown,
} from '../../../actors/commerce/payments/protocol.js'
import type { Listed } from '../../../actors/domain/paging.js'
import type { Address, Ask, Protocol } from '../../../runtime/kernel/protocol.js'
import { callerOf } from '../../request/caller.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import type { ReplyContext } from '../../response/replies.js'
import { json, problem, type ReplyRule, type Route, reply, route } from '../../route.js'
import { ActivateBody } from './commerce-shapes.js'

const AT = '/api/v1/commerce'
const shared = { tags: ['Commerce'], exposure: 'internal' } as const
export const reading = {
  ...shared,
  method: 'GET',
  security: { scheme: 'bearer', scopes: ['commerce:read', 'commerce:manage'] },
} as const
export const writing = {
  ...shared,
  method: 'POST',
  security: { scheme: 'bearer', scopes: ['commerce:manage'] },
} as const
export const named = z.object({ id: z.string().max(64) })

export const unknown = problem(404, 'not-found', {
  detail: 'The resource does not exist in this tenant.',
})
export const invalid = problem<Invalid, 'bad-request'>(
  400,
  'bad-request',
  ({ pointer, detail }) => ({ detail, errors: [{ pointer: `#${pointer}`, detail }] }),
)

type Show<Row, Shape extends z.ZodType> = (row: Row, context: ReplyContext) => z.input<Shape>

/** A page of records, with a link to the next page. */
export function listed<Row, Shape extends z.ZodType>(
  shape: Shape,
  show: Show<Row, Shape>,
): ReplyRule<Listed<NoInfer<Row>>> {
  return reply(
    200,
    z.array(shape),
    ({ rows }: Listed<Row>, context) => rows.map((row) => show(row, context)),
    ({ next }, context) => nextLink(next, context),
  )
}

/** The record of a row that an operation has read or changed. */
export function shown<Row, Shape extends z.ZodType>(
  shape: Shape,
  show: Show<Row, Shape>,
): ReplyRule<{ readonly row: NoInfer<Row> }> {
  return reply(200, shape, ({ row }: { readonly row: Row }, context) => show(row, context))
}

/** The record of a new row, at `path` and its id. */
export function created<Row, Shape extends z.ZodType>(
  path: string,
  shape: Shape,
  show: Show<Row, Shape>,
): ReplyRule<{ readonly row: NoInfer<Row> & { readonly id: string } }> {
  return reply(
    201,
    shape,
    ({ row }: { readonly row: Row & { readonly id: string } }, context) => show(row, context),
    ({ row }) => ({ location: `${AT}/${path}/${row.id}` }),
  )
}

/** An actor with a message that has the name of the operation. */
type Handled<K extends string, Message extends Protocol[string]> = Pick<
  Address<{ [_ in K]: Message }>,
  'name' | 'protocol'
>

/** The operation that lists rows of the tenant, newest first. */
export function lists<K extends string, Row, Shape extends z.ZodType>(
  actor: Handled<NoInfer<K>, Ask<ListOf, Listed<NoInfer<Row>>>>,
  operationId: K,
  path: string,
  shape: Shape,
  show: Show<Row, Shape>,
): Route {
  return route(
    actor as Address<{ one: Ask<ListOf, Listed<Row>> }>,
    operationId as string as 'one',
    {
      ...reading,
      path: `${AT}/${path}`,
      summary: `List the ${many(path)} of the tenant, newest first`,
      query: PageQuery,
      message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
      replies: { listed: listed(shape, show) },
    },
  )
}

/** The operation that reads a row of the tenant. */
export function reads<K extends string, Row, Shape extends z.ZodType>(
  actor: Handled<NoInfer<K>, Ask<Named, Found<NoInfer<Row>> | Unknown>>,
  operationId: K,
  path: string,
  shape: Shape,
  show: Show<Row, Shape>,
): Route {
  return route(
    actor as Address<{ one: Ask<Named, Found<Row> | Unknown> }>,
    operationId as string as 'one',
    {
      ...reading,
      path: `${AT}/${path}/{id}`,
      summary: `Read a ${one(path)}`,
      params: named,
      message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
      replies: { found: shown(shape, show), unknown },
    },
  )
}

/** The operation that activates or deactivates a row of the tenant. */
export function activates<K extends string, Row, Shape extends z.ZodType>(
  actor: Handled<NoInfer<K>, Ask<Activate, Changed<NoInfer<Row>> | Unknown>>,
  operationId: K,
  path: string,
  shape: Shape,
  show: Show<Row, Shape>,
): Route {
  type Handles = { one: Ask<Activate, Changed<Row> | Unknown> }
  return route(actor as Address<Handles>, operationId as string as 'one', {
    ...writing,
    method: 'PATCH',
    path: `${AT}/${path}/{id}`,
    summary: `Activate or deactivate a ${one(path)}`,
    params: named,
    body: json(ActivateBody),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      active: request.body.active,
    }),
    replies: { changed: shown(shape, show), unknown },
  })
}

/** `payment-links` as `payment links`. */
const many = (path: string) => path.replace('-', ' ')
const one = (path: string) => many(path).slice(0, -1)
