/** The query of a page that begins a flow of a tenant: sign-in and sign-up. */
import { z } from 'zod'
import type { Browser } from '../request/browser.js'
import { visitorOf } from './visitor.js'

export const FlowStart = z.object({
  flow: z.string().max(64).optional(),
  tenant_id: z.string().max(64).optional(),
  tenant_slug: z.string().max(64).optional(),
  return_to: z.string().max(2048).optional(),
  ui_locales: z
    .string()
    .max(256)
    .regex(/^\P{Cc}*$/u)
    .optional(),
})

/** The message of the page. */
export const flowStartOf = (request: {
  query: z.output<typeof FlowStart>
  host: string
  browser: Browser
  clientAddress: string
}) => ({
  flow: request.query.flow ?? null,
  tenant: {
    tenantId: request.query.tenant_id,
    tenantSlug: request.query.tenant_slug,
    host: request.host,
  },
  returnTo: request.query.return_to ?? null,
  uiLocales: request.query.ui_locales,
  visitor: visitorOf(request),
})
