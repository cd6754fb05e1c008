select 'EUR' as currency, 1.0 as rate
