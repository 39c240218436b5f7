/** Lists and reads the objects of a merchant. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { TenantRows } from '../../../storage/platform/portable/tenant-rows.js'
import type { Database } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import type { ListCursor, Listed } from '../../domain/paging.js'
import { listOf } from '../../platform/paging.js'
import type { Found, ListOf, Named, Unknown } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

type Needs = { readonly database: Database }

/** A handler that lists rows of the tenant, newest first. */
export const lists =
  <Row extends ListCursor, Shown>(
    { list }: Pick<TenantRows<Row>, 'list'>,
    show: (row: Row) => Shown,
  ) =>
  (needs: Needs, message: ListOf, context: MessageContext): Promise<Listed<Shown>> =>
    listOf(needs, message.tenantId, message, context, { list, show })

/** A handler that reads a row of the tenant by its id. */
export const reads =
  <Row, Shown>({ find }: Pick<TenantRows<Row>, 'find'>, show: (row: Row) => Shown) =>
  async (
    { database }: Needs,
    { tenantId, id }: Named,
    context: MessageContext,
  ): Promise<Found<Shown> | Unknown> => {
    if (!isUuid(id)) return { tag: 'unknown' }
    const row = await inTenant(database, tenantId, context, (tx) => find(tx, tenantId, id))
    return row === undefined ? { tag: 'unknown' } : { tag: 'found', row: show(row) }
  }
