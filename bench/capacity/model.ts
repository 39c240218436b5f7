/**
 * A model of large deployments: what a number of people and tenants needs, in cells of one database each. The largest
 * tenants are placed one by one, and every hour of a day is computed for every cell. All numbers come from `inputs.json`.
 */

type Input<T> = { readonly value: T; readonly source: string }
type Operation =
  | 'password'
  | 'code_exchange'
  | 'refresh'
  | 'client_token'
  | 'introspection'
  | 'agent_login'
  | 'webhook'
type Costs = Readonly<Record<Operation, number>>

export type CapacityInputs = {
  readonly people: Input<number>
  readonly tenants: Input<number>
  readonly scales: Input<readonly number[]>
  readonly sign_ins_per_person_and_day: Input<number>
  readonly password_share: Input<number>
  readonly refreshes_per_person_and_day: Input<number>
  readonly introspections_per_person_and_day: Input<number>
  readonly agent_logins_per_tenant_and_day: Input<number>
  readonly service_tokens_per_tenant_and_day: Input<number>
  readonly webhook_share_of_events: Input<number>
  readonly busiest_hour_share: Input<number>
  /** Shares of people, 8 hours apart. */
  readonly regions: Input<readonly number[]>
  readonly burst_factor: Input<number>
  readonly zipf_exponent: Input<number>
  readonly service_cpu_us: Input<Costs>
  readonly database_cpu_us: Input<Costs>
  readonly bytes_per_audit_event: Input<number>
  readonly bytes_per_person: Input<number>
  readonly cell_database_processors: Input<number>
  readonly cell_disk_tib: Input<number>
  readonly utilisation_max: Input<number>
}

/** What a deployment of one scale needs. */
export type Capacity = {
  readonly scale: number
  readonly people: number
  readonly tenants: number
  /** In the busiest minute. */
  readonly tokensPerSecond: number
  readonly passwordsPerSecond: number
  readonly serviceProcessors: number
  readonly cells: number
  /** Processors that the database of the busiest cell uses. */
  readonly busiestCellProcessors: number
  /** Disk of one cell after a year. */
  readonly cellDiskTib: number
  /** Share of its cell that the largest tenant is, of people. */
  readonly largestTenantShare: number
  readonly largestTenantPeople: number
}

const HOURS = 24
const HOURS_BETWEEN_REGIONS = 8
const HOUR_SECS = 3_600
const TIB = 2 ** 40
/** Tenants that are placed one by one. The others are many and small, and spread evenly. */
const PLACED_TENANTS = 2_000
const DAYS_PER_YEAR = 365

export function capacityOf(inputs: CapacityInputs, scale: number): Capacity {
  const people = inputs.people.value * scale
  const tenants = inputs.tenants.value * scale
  const peak = peakOf(inputs, people, tenants)
  const usable = inputs.cell_database_processors.value * inputs.utilisation_max.value
  const disk = diskOf(inputs, people, tenants)
  // The fewest cells that hold the whole, then more until the busiest cell fits too.
  let cells = Math.max(
    1,
    Math.ceil(peak.databaseProcessors / usable),
    Math.ceil(disk / (inputs.cell_disk_tib.value * TIB)),
  )
  let placed = place(inputs, people, tenants, cells)
  while (cells > 1 && placed.busiestShare * peak.databaseProcessors > usable) {
    const next = cells + Math.max(1, Math.floor(cells / 50))
    const after = place(inputs, people, tenants, next)
    // A tenant with its own cell does not become smaller.
    if (after.busiestShare >= placed.busiestShare) break
    cells = next
    placed = after
  }
  return {
    scale,
    people,
    tenants,
    tokensPerSecond: peak.tokens,
    passwordsPerSecond: peak.passwords,
    serviceProcessors: Math.ceil(peak.serviceProcessors / inputs.utilisation_max.value),
    cells,
    busiestCellProcessors: placed.busiestShare * peak.databaseProcessors,
    cellDiskTib: (placed.busiestShare * disk) / TIB,
    largestTenantShare: placed.largestPeople / (placed.busiestShare * people),
    largestTenantPeople: placed.largestPeople,
  }
}

/** Operations of a day, by kind. */
function dayOf(inputs: CapacityInputs, people: number, tenants: number): Costs {
  const signIns = people * inputs.sign_ins_per_person_and_day.value
  const refresh = people * inputs.refreshes_per_person_and_day.value
  const agentLogin = tenants * inputs.agent_logins_per_tenant_and_day.value
  const clientToken = tenants * inputs.service_tokens_per_tenant_and_day.value
  const events = 2 * signIns + refresh + agentLogin + clientToken
  return {
    password: signIns * inputs.password_share.value,
    code_exchange: signIns,
    refresh,
    client_token: clientToken,
    introspection: people * inputs.introspections_per_person_and_day.value,
    agent_login: agentLogin,
    webhook: events * inputs.webhook_share_of_events.value,
  }
}

/** The share of a day's load that falls into each hour: regions are busy one after another. */
function hoursOf({ regions, busiest_hour_share: busiest }: CapacityInputs): readonly number[] {
  // A cosine over the day has its maximum where the busiest hour is, and the rest of the day sums to one.
  const curve = (hour: number) => 1 + Math.cos(((hour - HOURS / 2) / HOURS) * 2 * Math.PI)
  const sharpness = sharpnessFor(curve, busiest.value)
  const shape = Array.from({ length: HOURS }, (_, hour) => curve(hour) ** sharpness)
  const total = shape.reduce((sum, part) => sum + part, 0)
  return Array.from({ length: HOURS }, (_, hour) =>
    regions.value.reduce((sum, share, nth) => {
      const local = (hour + nth * HOURS_BETWEEN_REGIONS) % HOURS
      return sum + (share * shape[local]!) / total
    }, 0),
  )
}

/** The exponent that gives the busiest hour its share of the day. */
function sharpnessFor(curve: (hour: number) => number, wanted: number): number {
  let [low, high] = [0, 50]
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2
    let total = 0
    for (let hour = 0; hour < HOURS; hour += 1) total += curve(hour) ** middle
    if (curve(HOURS / 2) ** middle / total < wanted) low = middle
    else high = middle
  }
  return (low + high) / 2
}

function peakOf(inputs: CapacityInputs, people: number, tenants: number) {
  const day = dayOf(inputs, people, tenants)
  const busiest = Math.max(...hoursOf(inputs))
  const perSecond = (daily: number) => (daily * busiest * inputs.burst_factor.value) / HOUR_SECS
  const processors = (costs: Costs) =>
    (Object.keys(day) as Operation[]).reduce(
      (sum, kind) => sum + (perSecond(day[kind]) * costs[kind]) / 1e6,
      0,
    )
  return {
    tokens: perSecond(day.code_exchange + day.refresh + day.client_token + day.agent_login),
    passwords: perSecond(day.password),
    serviceProcessors: processors(inputs.service_cpu_us.value),
    databaseProcessors: processors(inputs.database_cpu_us.value),
  }
}

/** Bytes after a year. Audit events are never deleted. */
function diskOf(inputs: CapacityInputs, people: number, tenants: number): number {
  const day = dayOf(inputs, people, tenants)
  const events = day.code_exchange * 2 + day.refresh + day.agent_login + day.client_token
  const kept = DAYS_PER_YEAR * events * inputs.bytes_per_audit_event.value
  return people * inputs.bytes_per_person.value + kept
}

/** Puts each large tenant into the emptiest cell, and spreads the small ones. */
function place(
  { zipf_exponent: { value: exponent } }: CapacityInputs,
  people: number,
  tenants: number,
  cells: number,
): { readonly busiestShare: number; readonly largestPeople: number } {
  const weight = (rank: number) => rank ** -exponent
  const whole = zipfSum(tenants, exponent)
  const loads = new Float64Array(cells)
  const placed = Math.min(PLACED_TENANTS, tenants)
  let sum = 0
  for (let rank = 1; rank <= placed; rank += 1) {
    const share = weight(rank) / whole
    sum += share
    let emptiest = 0
    for (let cell = 1; cell < cells; cell += 1) if (loads[cell]! < loads[emptiest]!) emptiest = cell
    loads[emptiest] = loads[emptiest]! + share
  }
  return { busiestShare: level(loads, 1 - sum), largestPeople: (people * weight(1)) / whole }
}

/** The fullest cell after the rest has gone to the emptiest cells. */
function level(loads: Float64Array, rest: number): number {
  const sorted = loads.toSorted()
  let left = rest
  for (let cell = 0; cell + 1 < sorted.length; cell += 1) {
    const needed = (sorted[cell + 1]! - sorted[cell]!) * (cell + 1)
    if (needed >= left) return Math.max(sorted.at(-1)!, sorted[cell]! + left / (cell + 1))
    left -= needed
  }
  return sorted.at(-1)! + left / sorted.length
}

/** The sum of rank^-exponent: exact for the first ranks, an integral for the rest. */
function zipfSum(count: number, exponent: number): number {
  const exact = Math.min(count, 10_000)
  let sum = 0
  for (let rank = 1; rank <= exact; rank += 1) sum += rank ** -exponent
  if (count <= exact) return sum
  const integral = (to: number) => to ** (1 - exponent) / (1 - exponent)
  return sum + integral(count + 0.5) - integral(exact + 0.5)
}

/** The table of docs/guides/operations/sizing.md. */
export function capacityTable(inputs: CapacityInputs): string {
  const rows = inputs.scales.value.map((scale) => capacityOf(inputs, scale))
  const cells = rows.map((row) => [
    `${row.scale}x`,
    shown(row.people),
    shown(row.tenants),
    shown(row.tokensPerSecond),
    shown(row.passwordsPerSecond),
    shown(row.serviceProcessors),
    shown(row.cells),
    shown(row.busiestCellProcessors),
    shown(row.cellDiskTib),
    `${shown(row.largestTenantPeople)} (${shown(row.largestTenantShare * 100)}% of its cell)`,
  ])
  const head = [
    'scale',
    'people',
    'tenants',
    'tokens per second',
    'passwords per second',
    'processors of the service',
    'cells',
    'processors of the busiest database',
    'TiB of a cell after a year',
    'people of the largest tenant',
  ]
  return [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Two significant digits: the inputs are not more exact. */
function shown(value: number): string {
  if (value === 0) return '0'
  const digits = Math.floor(Math.log10(Math.abs(value)))
  const step = 10 ** (digits - 1)
  const rounded = Math.round(value / step) * step
  return rounded >= 10
    ? Math.round(rounded).toLocaleString('en-US')
    : String(Number(rounded.toPrecision(2)))
}
