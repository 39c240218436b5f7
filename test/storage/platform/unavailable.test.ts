/** What an error of the server says about the connection and the commit. */
import test from 'ava'
import {
  DatabaseUnavailable,
  isConnectionLoss,
  isGivenUp,
} from '../../../storage/platform/unavailable.js'

const errorOf = (code: string, severity?: string) =>
  Object.assign(new Error('could not write'), { code, ...(severity && { severity }) })

test('a full disk gives up one statement, unless it ends the session or the server', (t) => {
  const ofStatement = errorOf('53100', 'ERROR')
  t.true(isGivenUp(ofStatement))
  t.false(isConnectionLoss(ofStatement))
  t.true(new DatabaseUnavailable('full', ofStatement).overloaded)

  // The last one is a PANIC of a server whose language is German. Not every PANIC is of a full disk.
  const ending = [errorOf('53100', 'FATAL'), errorOf('53100', 'PANIC'), errorOf('53100', 'PANIK')]
  for (const error of [...ending, errorOf('58030', 'PANIC')]) {
    t.false(isGivenUp(error))
    t.true(isConnectionLoss(error))
    t.false(new DatabaseUnavailable('ended', error).overloaded)
  }
})

test('other errors keep their meaning in every language', (t) => {
  t.true(isGivenUp(errorOf('57014', 'FEHLER')))
  t.true(isGivenUp(errorOf('53200')))
  for (const code of ['23505', '42601']) {
    t.false(isGivenUp(errorOf(code, 'FEHLER')))
    t.false(isConnectionLoss(errorOf(code, 'FEHLER')))
  }
})
