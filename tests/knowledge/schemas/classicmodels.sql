CREATE TABLE productlines (productLine text PRIMARY KEY, textDescription text, image blob);
CREATE TABLE products (productCode text PRIMARY KEY, productName text, productLine text REFERENCES productlines, productScale text, productVendor text, quantityInStock integer, buyPrice numeric, MSRP numeric);
CREATE TABLE offices (officeCode text PRIMARY KEY, city text, phone text, addressLine1 text, state text, country text, postalCode text, territory text);
CREATE TABLE employees (employeeNumber integer PRIMARY KEY, lastName text, firstName text, extension text, email text, officeCode text REFERENCES offices, reportsTo integer REFERENCES employees, jobTitle text);
CREATE TABLE customers (customerNumber integer PRIMARY KEY, customerName text, contactLastName text, phone text, city text, country text, salesRepEmployeeNumber integer REFERENCES employees, creditLimit numeric);
CREATE TABLE orders (orderNumber integer PRIMARY KEY, orderDate date, requiredDate date, shippedDate date, status text, comments text, customerNumber integer REFERENCES customers);
CREATE TABLE orderdetails (orderNumber integer REFERENCES orders, productCode text REFERENCES products, quantityOrdered integer, priceEach numeric, orderLineNumber integer, PRIMARY KEY (orderNumber, productCode));
CREATE TABLE payments (customerNumber integer REFERENCES customers, checkNumber text, paymentDate date, amount numeric, PRIMARY KEY (customerNumber, checkNumber));
