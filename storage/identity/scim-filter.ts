/** Conditions on SCIM users as SQL with bound parameters. The text has only words of this file. */
import { lookedUp } from './email-keys.js'
import { SHOWN_EMAIL, SHOWN_STATUS } from './tenant-users.js'

type TextOperator = 'eq' | 'ne' | 'co' | 'sw'
type TimeOperator = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le'
/** A text that a condition compares. Of `emails`, one value of the user must fulfil it. */
type TextField = 'userName' | 'externalId' | 'id'
type EmailField = 'value' | 'type' | 'primary'

export type ScimCondition =
  | { readonly tag: 'and' | 'or'; readonly parts: readonly ScimCondition[] }
  | { readonly tag: 'not'; readonly part: ScimCondition }
  | { readonly tag: 'always'; readonly is: boolean }
  | {
      readonly tag: 'text'
      readonly field: TextField
      readonly operator: TextOperator
      readonly value: string
    }
  | { readonly tag: 'has_external_id' }
  | { readonly tag: 'active'; readonly is: boolean }
  | { readonly tag: 'modified'; readonly operator: TimeOperator; readonly value: Date }
  /** One address fulfils `part`. */
  | { readonly tag: 'email'; readonly part: EmailCondition }

/** A condition on one address. */
export type EmailCondition =
  | { readonly tag: 'and' | 'or'; readonly parts: readonly EmailCondition[] }
  | { readonly tag: 'not'; readonly part: EmailCondition }
  | { readonly tag: 'always'; readonly is: boolean }
  | { readonly tag: 'has'; readonly field: EmailField }
  | { readonly tag: 'primary'; readonly is: boolean }
  | {
      readonly tag: 'text'
      readonly field: 'value' | 'type'
      readonly operator: TextOperator
      readonly value: string
    }

/** The time of the last change. */
export const LAST_MODIFIED = 'greatest(u.updated_at, s.updated_at)'
/** The addresses of a user as jsonb. The account's address stands for them until a directory says others. */
export const EMAILS = `case when s.user_id is null
  then jsonb_build_array(jsonb_build_object('value', ${SHOWN_EMAIL}, 'type', 'work', 'primary', true))
  else s.attributes -> 'emails' end`
const USER_NAME = 'coalesce(s.user_name_key, lower(a.email))'

const TIME_SIGNS: { readonly [O in TimeOperator]: string } = {
  eq: '=',
  ne: '<>',
  gt: '>',
  ge: '>=',
  lt: '<',
  le: '<=',
}

/**
 * Writes a condition with the aliases `u` (tenant_users), `a` (accounts) and `s` (scim_users). The result is never null.
 * @param bind adds a parameter and returns its placeholder. `$1` is the tenant.
 */
export function scimConditionSql(
  condition: ScimCondition,
  bind: (value: unknown) => string,
): string {
  switch (condition.tag) {
    case 'and':
    case 'or':
      return joined(
        condition.tag,
        condition.parts.map((part) => scimConditionSql(part, bind)),
      )
    case 'not':
      return `(not ${scimConditionSql(condition.part, bind)})`
    case 'always':
      return String(condition.is)
    case 'text':
      return textSql(condition, bind)
    case 'has_external_id':
      return '(s.external_id is not null)'
    case 'active':
      return `((${SHOWN_STATUS}) ${condition.is ? '<>' : '='} 'suspended')`
    case 'modified':
      return `(${LAST_MODIFIED} ${TIME_SIGNS[condition.operator]} ${bind(condition.value)}::timestamptz)`
    case 'email':
      return `exists (select from jsonb_array_elements(${EMAILS}) e where ${emailSql(condition.part, bind)})`
  }
}

function joined(word: 'and' | 'or', parts: readonly string[]): string {
  return `(${parts.join(` ${word} `)})`
}

function textSql(
  { field, operator, value }: Extract<ScimCondition, { tag: 'text' }>,
  bind: (value: unknown) => string,
): string {
  if (field === 'id' && operator === 'eq') return `(u.id = ${bind(value)}::uuid)`
  if (field === 'id') return compared('u.id::text', operator, bind(value))
  if (field === 'externalId' && operator === 'eq')
    return `(s.external_id is not null and s.external_id = ${bind(value)})`
  if (field === 'externalId') return compared("coalesce(s.external_id, '')", operator, bind(value))
  const key = `lower(${bind(lookedUp(value))})`
  if (operator !== 'eq') return compared(USER_NAME, operator, key)
  // By the indexes: this filter precedes most requests of directories.
  return `(u.id in (select n.user_id from scim_users n where n.tenant_id = $1 and n.user_name_key = ${key}
    union all select o.id from accounts b join tenant_users o on o.account_id = b.id and o.tenant_id = $1
      where b.email_key in (${key}, ${key} || '/' || $1::uuid) and not exists (select from scim_users p
        where p.tenant_id = $1 and p.user_id = o.id)))`
}

function compared(column: string, operator: TextOperator, parameter: string): string {
  switch (operator) {
    case 'eq':
      return `(${column} = ${parameter})`
    case 'ne':
      return `(${column} <> ${parameter})`
    case 'co':
      return `(position(${parameter} in ${column}) > 0)`
    case 'sw':
      return `starts_with(${column}, ${parameter})`
  }
}

function emailSql(condition: EmailCondition, bind: (value: unknown) => string): string {
  switch (condition.tag) {
    case 'and':
    case 'or':
      return joined(
        condition.tag,
        condition.parts.map((part) => emailSql(part, bind)),
      )
    case 'not':
      return `(not ${emailSql(condition.part, bind)})`
    case 'always':
      return String(condition.is)
    case 'has':
      return `(e ->> '${condition.field}' is not null)`
    case 'primary':
      return `(coalesce((e ->> 'primary')::boolean, false) = ${bind(condition.is)}::boolean)`
    case 'text':
      return compared(
        `coalesce(lower(e ->> '${condition.field}'), '')`,
        condition.operator,
        `lower(${bind(condition.value)})`,
      )
  }
}
