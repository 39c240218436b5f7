/** Italian texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': 'Link di {tenant}',

  'ways.other': 'Accedi in un altro modo',
  'ways.account': 'Torna al Suo account',
  'ways.phone': 'Continua con il telefono',

  'ways.ethereum': 'Continua con Ethereum',

  'ways.guest': 'Continua come ospite',

  'confirm.lead':
    'Non ha mai effettuato l’accesso da qui, oppure qualcuno ha provato la Sua password. Abbiamo inviato un codice al Suo indirizzo email.',
  'confirm.hint': 'Dall’email. Può richiedere un minuto.',
  'confirm.again': 'Invia un nuovo codice via email',

  'guest.name': 'Ospite',
  'guest.title': 'Conservi il Suo account',
  'guest.lead':
    'Aggiunga il Suo indirizzo email per conservare questo account. Le inviamo un codice.',
  'guest.send': 'Invia un codice via email',
  'guest.sent': 'Abbiamo inviato un codice a {email}. Può richiedere un minuto.',
  'guest.prove': 'Conserva il mio account',
  'guest.again': 'Usa un altro indirizzo o richiedi un nuovo codice',
  'guest.taken': 'Ha già un account con questo indirizzo email. Acceda a quell’account.',
  'guest.section': 'Lei è un ospite',
  'guest.section.lead':
    'Non può accedere di nuovo da un altro dispositivo e questo account termina se non lo usa per un certo periodo.',
  'guest.add': 'Aggiungi il Suo indirizzo email',

  'wallet.title': 'Acceda con Ethereum',
  'wallet.lead':
    'Il Suo wallet Le chiede di firmare un messaggio. Non costa nulla e non invia alcuna transazione.',
  'wallet.submit': 'Collega wallet',
  'wallet.new.title': 'Colleghi un account Ethereum',
  'wallet.new.lead':
    'In seguito potrà accedere con questo account. Il Suo wallet Le chiede di firmare un messaggio. Non costa nulla e non invia alcuna transazione.',
  'wallet.new.submit': 'Collega wallet',
  'wallet.missing':
    'Questo browser non ha un wallet Ethereum. Ne installi uno o acceda in un altro modo.',
  'wallet.cancelled': 'Ha rifiutato nel Suo wallet. Riprovi quando vuole.',
  'wallet.chain': 'Il Suo wallet è su una rete che qui non è accettata. Cambi rete e riprovi.',
  'wallet.failed': 'Il Suo wallet non ha firmato il messaggio. Riprovi.',
  'wallet.script':
    'L’accesso con Ethereum richiede JavaScript, perché il Suo wallet firma in questo browser. Lo attivi o acceda in un altro modo.',
  'wallet.wrong': 'La firma non è valida o il messaggio è scaduto. Riprovi.',
  'wallet.unlinked':
    'Nessun account usa questo account Ethereum. Acceda in un altro modo, poi lo colleghi nella pagina del Suo account.',
  'wallet.taken':
    'Questo account Ethereum è già collegato a un account, oppure ne ha già collegati quanti sono consentiti.',
  'wallet.section': 'Account Ethereum',
  'wallet.none': 'Ancora nessun account Ethereum.',
  'wallet.add': 'Collega un account Ethereum',

  'phone.title': 'Acceda con il Suo telefono',
  'phone.lead': 'Le inviamo un codice via SMS.',
  'phone.number': 'Numero di telefono',
  'phone.number.hint': 'Con il prefisso internazionale, per esempio +39 06 1234 5678.',
  'phone.number.invalid':
    'Inserisca un numero di telefono con il prefisso internazionale, per esempio +39 06 1234 5678.',
  'phone.number.country': 'Non possiamo inviare SMS in questo Paese.',
  'phone.send': 'Invia un codice via SMS',
  'phone.code.title': 'Inserisca il codice',
  'phone.code.lead':
    'Se un account usa questo numero, un SMS è in arrivo. Può richiedere un minuto.',
  'phone.code.sent': 'Abbiamo inviato un codice al {number}. Può richiedere un minuto.',
  'phone.code': 'Codice a 6 cifre',
  'phone.code.hint': 'Dall’SMS.',
  'phone.code.wrong':
    'Questo codice è errato o non è più valido. Lo controlli o ne richieda uno nuovo.',
  'phone.prove': 'Conferma numero',
  'phone.again': 'Usa un altro numero o richiedi un nuovo codice',
  'phone.own.title': 'Aggiunga il Suo numero di telefono',
  'phone.own.lead':
    'Potrà accedere con un codice che inviamo via SMS a questo numero. Se un altro account lo usa, passa al Suo.',
  'phone.section': 'Numero di telefono per l’accesso',
  'phone.none': 'Ancora nessun numero di telefono.',
  'phone.add': 'Aggiungi un numero di telefono',
  'phone.change': 'Cambia il numero di telefono',
}
