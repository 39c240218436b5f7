/** Event filters of webhook subscriptions: exact names, `prefix.*`, or `*`. */
import { EVENT_TYPES, type EventType } from '../events.js'

export const EVENT_FILTERS_MAX = 100

/** True if a filter matches an offered type. A prefix ends at a dot. */
export function isEventFilter(filter: string, offered: readonly EventType[]): boolean {
  if (filter === '*') return true
  if (filter.endsWith('.*')) {
    const prefix = filter.slice(0, -1)
    return offered.some((type) => type.startsWith(prefix))
  }
  return (offered as readonly string[]).includes(filter)
}

export function matchesEvent(filters: readonly string[], type: string): boolean {
  return filters.some(
    (filter) =>
      filter === '*' ||
      filter === type ||
      (filter.endsWith('.*') && type.startsWith(filter.slice(0, -1))),
  )
}

/** The types that filters select, in the order of the catalogue. */
export function selectedTypes(filters: readonly string[]): EventType[] {
  return EVENT_TYPES.filter((type) => matchesEvent(filters, type))
}
