/** What renewals are given. */
import type { Database } from '../../storage/sql.js'
import type { DeskNeeds } from '../commerce/desk.js'

export type BillingNeeds = DeskNeeds & { readonly database: Database }
