/** Rows of entities that tests write without the API. */
import { randomUUID } from 'node:crypto'
import {
  camelCase,
  type Entity,
  type Members,
  type Row,
} from '../../../actors/domain/entities/entity.js'

/** A row with these members. The others have the defaults of the entity. */
export function rowOf<M extends Members>(
  { members }: Entity<M>,
  given: Pick<Row<M>, 'tenantId'> & Partial<Row<M>>,
): Row<M> {
  const now = new Date()
  const defaults = Object.entries(members).map(([name, member]) => [
    camelCase(name),
    member.safeParse(undefined).data,
  ])
  return {
    ...Object.fromEntries(defaults),
    id: randomUUID(),
    createdAt: now,
    updatedAt: now,
    ...given,
  } as Row<M>
}
