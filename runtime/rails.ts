/**
 * The rails of this build. A processor of one's own is an implementation of `Rail`
 * (actors/commerce/rail.ts), put into this list.
 */
import { type Rails, railsOf } from '../actors/commerce/rail.js'
import { sandboxRail } from '../actors/commerce/sandbox-rail.js'
import type { Database } from '../storage/sql.js'
import type { Clock } from './kernel/clock.js'

export function paymentRails(needs: { readonly database: Database; readonly clock: Clock }): Rails {
  return railsOf([sandboxRail(needs)])
}
