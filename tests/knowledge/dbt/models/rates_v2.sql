select 'EUR' as currency, 1.1 as rate
