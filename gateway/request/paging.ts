/** Lists come in pages: `limit`, `cursor_ts` with `cursor_id`, and a Link to the next. decisions.md 0. */
import { z } from 'zod'
import type { ListCursor } from '../../actors/domain/paging.js'
import type { ReplyContext } from '../route.js'

const PAGE_SIZE_DEFAULT = 50
const PAGE_SIZE_MAX = 200

/** Query of a list operation. A page size above the maximum is clamped, one below 1 refused. */
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
    cursor_ts: z.iso
      .datetime()
      .optional()
      .meta({ description: 'created_at of the last row seen; comes with cursor_id.' }),
    cursor_id: z.uuid().optional().meta({ description: 'id of the last row seen.' }),
  })
  .refine(({ cursor_ts, cursor_id }) => (cursor_ts === undefined) === (cursor_id === undefined), {
    message: 'cursor_ts and cursor_id come together',
    path: ['cursor_id'],
  })

/** The page a query means, as messages carry it. */
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

/** The Link header of a page that is not the last (RFC 8288 section 3). */
export function nextLink(
  next: ListCursor | null,
  { baseUrl, path, query }: ReplyContext,
): Record<string, string> {
  if (next === null) return {}
  const parameters = new URLSearchParams(query)
  parameters.set('cursor_ts', next.createdAt.toISOString())
  parameters.set('cursor_id', next.id)
  return { link: `<${baseUrl}${path}?${parameters}>; rel="next"` }
}
