/** Pages of lists: `limit`, `cursor_ts` with `cursor_id`, and a Link to the next page (docs/reference/http.md). */
import { z } from 'zod'
import type { ListCursor } from '../../actors/domain/paging.js'
import { reply, type ReplyContext, type ReplyRule } from '../response/replies.js'
import { Moment } from './moment.js'

const PAGE_SIZE_DEFAULT = 50
const PAGE_SIZE_MAX = 200

/** Query of a list operation. A limit above the maximum is lowered to it, a limit below 1 is refused. */
export const PageQuery = z
  .object({
    limit: z
      .string()
      .regex(/^0*[1-9][0-9]*$/, 'A whole number of 1 or more.')
      .transform(Number)
      .transform((limit) => Math.min(limit, PAGE_SIZE_MAX))
      .optional()
      .meta({
        description: `Rows of a page, 1 to ${PAGE_SIZE_MAX}; default ${PAGE_SIZE_DEFAULT}.`,
      }),
    cursor_ts: Moment.optional().meta({
      description: 'created_at of the last row seen. Requires cursor_id.',
    }),
    cursor_id: z
      .uuid()
      .optional()
      .meta({ description: 'id of the last row seen. Requires cursor_ts.' }),
  })
  .refine(({ cursor_ts, cursor_id }) => (cursor_ts === undefined) === (cursor_id === undefined), {
    message: 'cursor_ts and cursor_id must be used together',
    path: ['cursor_id'],
  })

/** The page of a query, as the member of a message. */
export function readPage({ limit, cursor_ts, cursor_id }: z.output<typeof PageQuery>): {
  limit: number
  after: ListCursor | null
} {
  return {
    limit: limit ?? PAGE_SIZE_DEFAULT,
    after:
      cursor_ts === undefined || cursor_id === undefined
        ? null
        : { createdAt: new Date(cursor_ts), id: cursor_id },
  }
}

/** The Link header with the next page (RFC 8288 section 3). Empty on the last page. */
export function nextLink(
  next: (ListCursor & { readonly key?: string | undefined }) | null,
  { baseUrl, path, query }: ReplyContext,
): Record<string, string> {
  if (next === null) return {}
  const parameters = new URLSearchParams(query)
  parameters.set('cursor_ts', next.createdAt.toISOString())
  parameters.set('cursor_id', next.id)
  if (next.key !== undefined) parameters.set('cursor_key', next.key)
  return { link: `<${baseUrl}${path}?${parameters}>; rel="next"` }
}

/** A page of a list, with a link to the next one. */
export function pageReply<
  Outcome extends { readonly next: Parameters<typeof nextLink>[0] },
  Schema extends z.ZodType,
>(schema: Schema, items: (outcome: Outcome) => z.input<Schema>[]): ReplyRule<Outcome> {
  const list = (outcome: Outcome) => items(outcome) as z.input<z.ZodArray<Schema>>
  return reply(200, z.array(schema), list, ({ next }, context) => nextLink(next, context))
}
