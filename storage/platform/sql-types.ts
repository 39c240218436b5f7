/** Converts database values to JavaScript values. */
import { type CustomTypesConfig, types } from 'pg'

const INT8 = 20
const DATE = 1082

/**
 * bigint becomes a number, and values above the safe integers are refused. date stays text, because a date has no
 * time zone. Other types are as in pg (timestamptz to Date, bytea to Buffer, numeric to text).
 */
export const parseTypes: CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (format !== 'binary') {
      if (oid === INT8) return parseInt8
      if (oid === DATE) return (text: string) => text
    }
    return types.getTypeParser(oid, format as 'text')
  },
} as CustomTypesConfig

function parseInt8(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is not a safe integer`)
  return value
}
