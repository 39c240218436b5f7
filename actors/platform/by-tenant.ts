/** Groups rows of several tenants. */
export function byTenant<Row extends { readonly tenantId: string }>(
  rows: readonly Row[],
): Map<string, Row[]> {
  const found = new Map<string, Row[]>()
  for (const row of rows) {
    const known = found.get(row.tenantId)
    if (known === undefined) found.set(row.tenantId, [row])
    else known.push(row)
  }
  return found
}
